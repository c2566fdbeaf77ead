"""What the package requires, by its own metadata, and whether it is installed."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import Requirement

COMMAND = "experiments"
"""The extra without which there is no command."""
DEVELOPMENT = {"dev", "bench", "oracles", "docs"}
"""Extras that serve no user."""


@dataclass(frozen=True)
class Dependency:
    """A required package, and the version that is installed."""

    name: str
    needs: str
    installed: str | None

    @property
    def met(self) -> bool:
        """Whether a version that will do is installed."""
        specifier = Requirement(self.needs).specifier
        return self.installed is not None and specifier.contains(self.installed, prereleases=True)

    def describe(self) -> str:
        """The version, or what is needed.

        >>> Dependency("torch", "torch>=2.6", "2.5.1").describe()
        '2.5.1, needs torch>=2.6'
        """
        if self.met:
            return str(self.installed)
        return f"{self.installed or 'not installed'}, needs {self.needs}"


def dependencies(extra: str = "") -> list[Dependency]:
    """What an extra requires, or with "" the package itself; extras of the package within extras are left out.

    >>> [one.name for one in dependencies()]
    ['torch', 'numpy']
    """
    return [Dependency(one.name, _without_marker(one), installed_version(one.name)) for one in _required(extra)]


def extras() -> list[str]:
    """The extras that a user may want, beside that of the command.

    >>> "ray" in extras(), "dev" in extras()
    (True, False)
    """
    declared = importlib.metadata.metadata("bgd").get_all("Provides-Extra") or []
    return sorted(set(declared) - DEVELOPMENT - {COMMAND})


def installed_version(package: str) -> str | None:
    """Of a package; None if it is not installed.

    >>> installed_version("no-such-package") is None
    True
    """
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _required(extra: str) -> Iterator[Requirement]:
    for text in importlib.metadata.requires("bgd") or []:
        one = Requirement(text)
        always = one.marker is None or one.marker.evaluate({"extra": ""})
        wanted = (
            always if not extra else not always and one.marker is not None and one.marker.evaluate({"extra": extra})
        )
        if wanted and one.name != "bgd":
            yield one


def _without_marker(requirement: Requirement) -> str:
    return f"{requirement.name}{requirement.specifier}"
