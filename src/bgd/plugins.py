"""Methods, networks, data sets and losses from outside the package, by the name of what a user wrote.

A name is looked for in three places: the package's own table; an entry point that an installed package declares
(``[project.entry-points."bgd.methods"]``, ``bgd.nets``, ``bgd.data``, ``bgd.losses``); or, where it holds a colon, the
object ``attribute`` of the module ``module`` (``"mypackage.tether:Tether"``). Importing a module runs its code.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from bgd.errors import BGDError, suggest

Value = TypeVar("Value")


class PluginError(BGDError, ValueError):
    """A name that leads to nothing: unknown, or a module that cannot be imported.

    >>> load("no_such_module:Net", "net")
    Traceback (most recent call last):
    bgd.plugins.PluginError: net 'no_such_module:Net': cannot import no_such_module (No module named ...
    """


def find(name: str, known: Mapping[str, Value], what: str, group: str) -> Value | Any:
    """The object that a name refers to: one of ``known``, an entry point of ``group``, or ``module:attribute``.

    >>> find("two", {"one": 1, "two": 2}, "number", "bgd.numbers")
    2
    >>> find("textwrap:dedent", {}, "function", "bgd.functions").__name__
    'dedent'
    >>> find("tow", {"one": 1, "two": 2}, "number", "bgd.numbers")
    Traceback (most recent call last):
    bgd.plugins.PluginError: no number 'tow': did you mean 'two'?
    """
    if name in known:
        return known[name]
    installed = _installed(group)
    if name in installed:
        return load(installed[name].value.partition("[")[0].strip(), what)  # without the extras that it may name
    if ":" in name:
        return load(name, what)
    raise PluginError(f"no {what} {name!r}: {suggest(name, names(known, group))}")


def names(known: Iterable[str], group: str) -> list[str]:
    """The package's own names, then those of installed entry points.

    >>> names(["sgd", "adam"], "bgd.no-such-group")
    ['sgd', 'adam']
    """
    return list(dict.fromkeys([*known, *_installed(group)]))


def load(spec: str, what: str) -> Any:
    """The object that ``module:attribute`` names.

    >>> load("collections:OrderedDict", "class").__name__
    'OrderedDict'
    """
    module_name, _, attribute = spec.partition(":")
    if not module_name or not attribute:
        raise PluginError(f"{what} {spec!r}: write it as module:attribute, such as mypackage.tether:Tether")
    try:
        found = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a script may end the process
        hint = "install it, or run from the folder that holds it" if isinstance(error, ImportError) else "fix it"
        raise PluginError(f"{what} {spec!r}: cannot import {module_name} ({describe(error)}): {hint}") from error
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            hint = suggest(part, dir(found))
            raise PluginError(f"{what} {spec!r}: {module_name} has no {attribute!r}: {hint}") from error
        except Exception as error:  # a module may compute its attributes
            raise PluginError(f"{what} {spec!r}: {part!r} fails ({describe(error)}): fix {module_name}") from error
    return found


def describe(error: BaseException) -> str:
    r"""An error of somebody else's code, in one line.

    >>> describe(ValueError("no GPU:\n  buy one"))
    'no GPU: buy one'
    >>> describe(SystemExit(3))
    'SystemExit: 3'
    """
    text = " ".join(str(error).split())
    return text if text and not isinstance(error, SystemExit) else f"{type(error).__name__}: {text}".rstrip(": ")


def spec_of(thing: Any) -> str:
    """The ``module:attribute`` of a class or function, by which another process finds it again.

    >>> import textwrap
    >>> spec_of(textwrap.dedent)
    'textwrap:dedent'
    """
    qualified = getattr(thing, "__qualname__", "")
    module = getattr(thing, "__module__", "")
    if not module or not qualified or "<" in qualified:
        raise PluginError(f"{thing!r} has no name that other processes could import: define it at the top of a module")
    return f"{module}:{qualified}"


@contextmanager
def import_paths(paths: Iterable[str]) -> Iterator[None]:
    """Inside, modules are also looked for in these folders, after all others.

    >>> with import_paths(["/no/such/folder"]):
    ...     sys.path[-1]
    '/no/such/folder'
    """
    added = [path for path in dict.fromkeys(paths) if path not in sys.path]
    sys.path.extend(added)
    try:
        yield
    finally:
        for path in added:
            if path in sys.path:
                sys.path.remove(path)


@cache
def _installed(group: str) -> dict[str, EntryPoint]:
    try:
        return {point.name: point for point in entry_points(group=group)}
    except Exception as error:
        raise PluginError(
            f"entry points of an installed package cannot be read ({describe(error)}): find it by pip check"
        ) from error
