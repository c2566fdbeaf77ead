"""A table by name: one of river's, a CSV or Parquet file, or a function that returns a data frame."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgd.data.extras import needs_extra
from bgd.data.tables.rewired import rewired_digits
from bgd.data.tables.river import RIVER_TABLES
from bgd.data.tables.types import Table, from_frame
from bgd.data.types import DataError
from bgd.errors import BGDError, suggest
from bgd.plugins import PluginError
from bgd.plugins import load as load_object

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = (".csv", ".parquet")
NAMED_TABLES: dict[str, Callable[[int], pd.DataFrame]] = {**RIVER_TABLES, "digits-rewired": rewired_digits}
"""By name: a function of the seed, which shuffles a table or generates a stream."""


def load_table(name: str, target: str | None = None, seed: int = 0) -> Table:
    """A table in time order.

    Args:
        name: one of ``NAMED_TABLES``; the path of a CSV or Parquet file; or ``module:function``, which is called
            without arguments and returns a data frame.
        target: the column of the labels; those have their own.
        seed: of a generator, or of the order of a table that has no time of its own.

    Raises:
        DataError: names what is wrong, and the way out.

    >>> load_table("river-phising")
    Traceback (most recent call last):
    bgd.data.types.DataError: no table 'river-phising': did you mean 'river-phishing'?
    >>> load_table("no-such.csv", "label")
    Traceback (most recent call last):
    bgd.data.types.DataError: no-such.csv: no such file
    """
    if name in NAMED_TABLES:
        return from_frame(NAMED_TABLES[name](seed), "label", name)
    if name.endswith(ENDINGS):
        return from_frame(_read(Path(name).expanduser()), target, Path(name).name)
    if ":" in name and os.sep not in name:
        return from_frame(_call(name), target, name)
    hint = suggest(name, [*NAMED_TABLES, "a path that ends in .csv or .parquet", "module:function"])
    raise DataError(f"no table {name!r}: {hint}")


def _read(path: Path) -> pd.DataFrame:
    with needs_extra("pandas", "experiments"):
        import pandas as pd
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        if path.suffix == ".csv":
            return pd.read_csv(path)
        with needs_extra("pyarrow", "streams"):
            import pyarrow  # noqa: F401, pandas reads Parquet by it
        return pd.read_parquet(path)
    except BGDError:
        raise
    except Exception as error:
        raise DataError(f"{path}: cannot be read as a table: {error}") from error


def _call(name: str) -> pd.DataFrame:
    with needs_extra("pandas", "experiments"):
        import pandas as pd
    try:
        made: Any = load_object(name, "table")()
    except PluginError as error:
        raise DataError(str(error)) from error
    except BGDError:
        raise
    except Exception as error:
        raise DataError(f"table {name!r}: its function failed with {type(error).__name__}: {error}") from error
    if not isinstance(made, pd.DataFrame):
        raise DataError(f"table {name!r}: its function returned a {type(made).__name__}: return a pandas.DataFrame")
    return made
