"""The built wheel in a clean environment: with torch and numpy alone, and with the extras.

The wheel is really built and really installed by pip into a new virtual environment. Its dependencies are not
downloaded again: they are made visible from the environment that runs the tests.
"""

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ("torch", "numpy")
MISSING = r"bgd: the command needs \w+, which is not installed: pip install 'bgd\[experiments\]'\n"
JUNK = {"__pycache__", "bgd.egg-info"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    copy = tmp_path_factory.mktemp("source")  # setuptools writes into the tree that it builds from
    for path in _source_files():
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


def _source_files():
    yield from (ROOT / name for name in ("pyproject.toml", "README.md", "LICENSE"))
    yield from (path for path in (ROOT / "src").rglob("*") if path.is_file() and not JUNK & set(path.parts))


def install(wheel: Path, folder: Path, visible: Path) -> Path:
    """A new environment with the wheel, which sees the packages in ``visible``; returns its bin folder."""
    venv.create(folder, with_pip=False)
    binaries = folder / ("Scripts" if sys.platform == "win32" else "bin")
    site = next(folder.rglob("site-packages"))
    (site / "visible.pth").write_text(f"{visible}\n")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(binaries / "python"),
        "install",
        "-q",
        "--no-deps",
        "--no-index",
    ]
    done = subprocess.run([*pip, str(wheel)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return binaries


def requirements(names: tuple[str, ...]) -> set[str]:
    """Installed distributions that these need, and theirs."""
    found, ahead = set(), list(names)
    while ahead:
        name = ahead.pop()
        if name in found:
            continue
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        ahead += [re.match(r"[\w.-]+", need)[0].lower() for need in needs if "extra ==" not in need]
    return found


def link_packages(names: set[str], folder: Path) -> None:
    """Links to the top-level files and folders of installed distributions."""
    site = Path(sysconfig.get_paths()["purelib"])
    for name in names:
        for file in importlib.metadata.files(name) or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__") and (site / top).exists() and not (folder / top).exists():
                (folder / top).symlink_to(site / top)


def run(binaries: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(binaries / arguments[0]), *arguments[1:]], cwd=cwd, capture_output=True, text=True, check=False
    )


TRAIN = """
import torch, bgd
model = torch.nn.Linear(3, 2)
optimizer = bgd.BGD(model.parameters())
x, y = torch.randn(8, 3), torch.randint(2, (8,))
torch.nn.functional.cross_entropy(model(x), y).backward()
optimizer.step()
print(bgd.__version__, bgd.predict(model, optimizer, x).probs.shape)
"""


def test_without_extras(wheel, tmp_path):
    visible = tmp_path / "visible"
    visible.mkdir()
    link_packages(requirements(CORE), visible)
    binaries = install(wheel, tmp_path / "env", visible)
    done = run(binaries, "python", "-c", TRAIN, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0.1.0 ")
    done = run(binaries, "bgd", "list", cwd=tmp_path)
    assert done.returncode == 2
    assert re.fullmatch(
        r"bgd: the command needs \w+, which is not installed: pip install 'bgd\[experiments\]'\n", done.stderr
    )
    done = run(binaries, "python", "-c", "import bgd; bgd.run_experiment", cwd=tmp_path)
    assert "pip install 'bgd[experiments]'" in done.stderr.splitlines()[-1]


def test_with_extras(wheel, tmp_path):
    binaries = install(wheel, tmp_path / "env", Path(sysconfig.get_paths()["purelib"]))
    where = run(binaries, "python", "-c", "import bgd; print(bgd.__file__)", cwd=tmp_path)
    assert str(tmp_path) in where.stdout, where.stdout + where.stderr
    done = run(binaries, "bgd", "run", "digits", "--preset", "smoke", "--out", "runs", "--row", "SGD", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(binaries, "bgd", "report", "runs", "--out", "report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert any((tmp_path / "report").rglob("*.html"))


def test_the_source_distribution_holds_what_the_wheel_is_built_from(wheel):
    with tarfile.open(next(wheel.parent.glob("*.tar.gz"))) as archive:
        names = archive.getnames()
    assert any(name.endswith("src/bgd/optim/bgd.py") for name in names)
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    source = ROOT / "src"
    expected = {str(path.relative_to(source)) for path in _source_files() if source in path.parents}
    assert expected <= packed
