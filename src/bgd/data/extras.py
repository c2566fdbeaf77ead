"""Optional dependencies: imported where they are used, with one clear line where they are absent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bgd.errors import MissingExtraError


@contextmanager
def needs_extra(module: str, extra: str = "experiments") -> Iterator[None]:
    """Around imports: a package that is not installed is reported with the extra that installs it.

    >>> with needs_extra("no_such_package"):
    ...     import no_such_package
    Traceback (most recent call last):
    bgd.errors.MissingExtraError: this needs no_such_package, which is not installed: pip install 'bgd[experiments]'
    """
    try:
        yield
    except ImportError as error:
        # what is missing may be another package of the extra, which a module of ours imports
        missing = (error.name or module).partition(".")[0]
        if missing == "bgd":
            raise
        raise MissingExtraError(missing, extra) from error
