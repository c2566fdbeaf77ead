"""The one-way flow of the package: data -> scenarios -> methods -> runs -> experiments -> report -> command."""

import ast
import subprocess
import sys

import import_graph

HEART = (
    "_version",
    "errors",
    "files",
    "losses",
    "plugins",
    "validation",
    "optim",
    "inference",
    "nets",
    "exact",
    "streams",
)
FLOW = (*HEART, "data", "scenarios", "methods", "runs", "experiments", "report", "api", "cli", "__main__")
"""A folder imports from those before it, and never from those behind it."""

LIGHT = (
    "bgd",
    "bgd.optim",
    "bgd.exact",
    "bgd.inference",
    "bgd.losses",
    "bgd.nets",
    "bgd.methods",
    "bgd.scenarios",
    "bgd.data",
)
"""What needs torch and numpy alone."""

EXTRAS = {"filelock", "jinja2", "matplotlib", "pandas", "PIL", "pooch", "pydantic", "requests", "rich"}
EXTRAS |= {"sklearn", "scipy", "typer", "ray", "tensorboard", "river", "pyarrow"}


def folder(module: str) -> str:
    return [*module.split("."), "__init__"][1]


def test_folders_import_from_left_to_right_only():
    rank = {name: i for i, name in enumerate(FLOW)}
    wrong = [
        f"{module} -> {other}"
        for module, others in import_graph.graph().items()
        for other in others
        if "__init__" not in (folder(module), folder(other)) and rank[folder(module)] < rank[folder(other)]
    ]
    assert not wrong


def test_every_folder_has_its_rank():
    assert {folder(module) for module in import_graph.modules()} - {"__init__"} <= set(FLOW)


def test_no_modules_import_each_other():
    assert import_graph.cycles(import_graph.graph()) == []


def test_the_cycle_search_finds_a_cycle():
    assert import_graph.cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_the_package_itself_is_imported_by_nobody():
    importers = [module for module, others in import_graph.graph().items() if "bgd" in others]
    assert importers == []


def test_imports_with_torch_and_numpy_alone():
    """One process for all: what is blocked can come with none of them."""
    script = (
        "import importlib, sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {EXTRAS!r}:\n"
        "            raise ModuleNotFoundError(f'{name} is blocked', name=name)\n"
        "sys.meta_path.insert(0, Blocker())\n"
        f"for module in {LIGHT!r}:\n"
        "    importlib.import_module(module)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_files_and_functions_stay_short():
    """One idea per file, one screen per function; the limits have some slack for docstrings with equations."""
    long_files, long_functions = [], []
    for name, path in import_graph.modules().items():
        text = path.read_text()
        if (lines := text.count("\n")) > 450:
            long_files.append(f"{name}: {lines} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                documented = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
                start = node.body[1].lineno if documented and len(node.body) > 1 else node.body[0].lineno
                if (length := node.end_lineno - start + 1) > 60:
                    long_functions.append(f"{name}.{node.name}: {length} lines")
    assert not long_files
    assert not long_functions
