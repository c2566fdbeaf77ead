"""A digest of all the code that a run passes through, to tell whether a stored result is that of today's code.

The code is the static import closure of the training loop and of the run's own method, network, data and loss:
``import`` statements are followed, those inside functions too, within this package and within the user's own. Of tables
of alternatives (all methods, all networks) only the chosen one counts. Each module is hashed as a syntax tree without
comments, docstrings and positions, so that formatting makes no difference. Imports by computed names are not followed.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import bgd._version
from bgd.methods.common.likelihoods import LIKELIHOODS
from bgd.methods.registry import METHODS, find_method
from bgd.nets.registry import NETS
from bgd.plugins import find, load
from bgd.runs.config import RunConfig
from bgd.runs.data import data_names
from bgd.runs.own_modules import SPEC, import_folder, is_installed, module_file

ROOT = "bgd.runs.run"
TABLES = ("bgd.methods", "bgd.methods.registry", "bgd.nets", "bgd.nets.registry")
"""Modules that import every alternative, of which a run uses one."""
OUTSIDE = ("bgd.api", "bgd.cli", "bgd.experiments", "bgd.report", "bgd.runs.executors", "bgd._version")
"""Parts of the package that no result depends on; the version is compared by itself."""


def code_digest(config: RunConfig) -> str:
    """A short digest of the code of a run as it is now.

    >>> sgd, adam = (RunConfig(method=name) for name in ("sgd", "adam"))
    >>> len(code_digest(sgd)), code_digest(sgd) == code_digest(adam), code_digest(sgd) == code_digest(sgd)
    (12, False, True)
    """
    setup = config.setup
    return _digest(config.method, setup.net.name, tuple(data_names(setup.data)), setup.loss)


@cache  # every run of a comparison needs it
def _digest(method: str, net: str, data: tuple[str, ...], loss: str | None) -> str:
    used = [(method, find_method(method)), (net, find(net, NETS, "net", "bgd.nets"))]
    if loss is not None:
        used.append((loss, find(loss, LIKELIHOODS, "loss", "bgd.losses")))
    used += [(name, load(name, "data set")) for name in data if SPEC.fullmatch(name)]
    modules = {ROOT: _package_file(ROOT)}
    total = hashlib.sha256()
    for name, thing in used:
        names = {_unwrap(thing).__module__} | ({name.partition(":")[0]} if ":" in name else set())
        if "__main__" in names:  # the rest of a script or notebook has no part in the run
            total.update(_normalised(_source(thing)).encode())
        modules |= {one: file for one in names - {"__main__"} if (file := module_file(one)) is not None}
    closure = import_closure({name: file for name, file in modules.items() if file is not None})
    for name, file in sorted(closure.items()):
        total.update(f"{name} {_hash_module(file)}\n".encode())
    return total.hexdigest()[:12]


def _unwrap(thing: Any) -> Any:
    return _unwrap(thing.func) if isinstance(thing, partial) else thing


def _source(thing: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(_unwrap(thing)))
    except (OSError, TypeError):  # typed into an interpreter
        return ""


# --- the closure of imports


def import_closure(roots: dict[str, Path]) -> dict[str, Path]:
    """All modules that the roots import, directly or not, with their files.

    Followed are modules of this package, and of the packages and folders of the roots.

    >>> closure = import_closure({"bgd.files": Path(bgd._version.__file__).with_name("files.py")})
    >>> list(closure)
    ['bgd.files']
    """
    folders = {name.partition(".")[0]: import_folder(name, file) for name, file in roots.items()}
    folders.pop("bgd", None)  # not the folder beside this package, such as site-packages
    found: dict[str, Path] = {}
    waiting = dict(roots)
    while waiting:
        name, file = waiting.popitem()
        found[name] = file
        for imported in _imports(name, file):
            if imported not in found and (path := _find(imported, name, folders)) is not None:
                waiting[imported] = path
    return found


def _find(imported: str, importer: str, folders: dict[str, Path]) -> Path | None:
    """The file of an imported module; None where it is not followed."""
    if any(imported == outside or imported.startswith(f"{outside}.") for outside in OUTSIDE):
        return None
    if importer in TABLES and imported in _alternatives():
        return None
    top = imported.partition(".")[0]
    if top == "bgd":
        return _package_file(imported)
    own = (folder for package, folder in folders.items() if package == top or not is_installed(folder))
    return next((path for folder in own if (path := _file_in(folder, imported)) is not None), None)


@cache
def _alternatives() -> frozenset[str]:
    things = (_unwrap(thing) for table in (METHODS, NETS) for thing in table.values())
    return frozenset(thing.__module__ for thing in things) - set(TABLES)


def _package_file(name: str) -> Path | None:
    return _file_in(Path(bgd._version.__file__).parents[1], name)


def _file_in(folder: Path, name: str) -> Path | None:
    stem = folder.joinpath(*name.split("."))
    return next((path for path in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py") if path.is_file()), None)


def _imports(name: str, file: Path) -> Iterator[str]:
    """The names of the modules that a file may import; names in modules, such as functions, lead to no file."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in _walk(_parse(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [base])])
            submodules = [f"{base}.{alias.name}" for alias in node.names]
            found = [one for one in submodules if _file_in(import_folder(name, file), one) is not None]
            yield from found
            if len(found) < len(submodules):
                yield base


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers see."""
    if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.dump(tree.test):
        children: Iterable[ast.AST] = tree.orelse
    else:
        yield tree
        children = ast.iter_child_nodes(tree)
    for child in children:
        yield from _walk(child)


# --- the hash of one module


@cache
def _parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _hash_module(file: Path) -> str:
    return hashlib.sha256(_dump(_parse(file)).encode()).hexdigest()


def _normalised(source: str) -> str:
    return _dump(ast.parse(source))


def _dump(node: Any) -> str:
    """A syntax tree as text, the same in all versions of Python: without what is empty, and without docstrings."""
    if isinstance(node, list):
        return f"[{','.join(_dump(one) for one in node if not _is_docstring(one))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = (
        f"{key}={_dump(value)}"
        for key, value in ast.iter_fields(node)
        if value not in (None, []) and key not in ("ctx", "kind", "type_comment")
    )
    return f"{type(node).__name__}({','.join(fields)})"


def _is_docstring(node: Any) -> bool:
    """Whether a node is a bare string, which does nothing wherever it is."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
