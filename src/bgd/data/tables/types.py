"""A table of numbers in time order, and how a data frame becomes one without a look ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from bgd.data.types import DataError
from bgd.errors import suggest

if TYPE_CHECKING:
    import pandas as pd

CATEGORIES: Final = 50
"""Values of a column of texts that get a number of their own; later ones share one more."""


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Rows in time order: ``x`` (N, D) float64, NaN where a value is missing; ``y`` (N,) int64.

    Attributes:
        name: of the table.
        x: features.
        y: labels, from 0.
        features: names of the columns of x.
        classes: names of the labels.

    >>> Table("tiny", np.zeros((3, 2)), np.array([0, 1, 0]), ("a", "b"), ("no", "yes"))
    Table('tiny', 3 rows, 2 features, 2 classes)
    """

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.int64]
    features: tuple[str, ...]
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.x.ndim != 2 or self.x.shape != (len(self.y), len(self.features)) or not self.x.size:
            raise DataError(
                f"{self.name}: {self.x.shape} features for {len(self.y)} labels: give at least one row and column"
            )
        if np.isinf(self.x).any():
            row, column = np.argwhere(np.isinf(self.x))[0]
            where = f"row {row}, column {self.features[column]!r}"
            raise DataError(f"{self.name}: {where} is infinite: give finite numbers")
        if len(self.classes) < 2:
            raise DataError(f"{self.name}: all labels are {self.classes[0]!r}: there is nothing to predict")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {len(self):,} rows, {self.x.shape[1]} features, {len(self.classes)} classes)"

    def first(self, rows: int | None) -> Table:
        """The first rows only; all classes keep their numbers."""
        return Table(self.name, self.x[:rows], self.y[:rows], self.features, self.classes)


def from_frame(frame: pd.DataFrame, target: str | None, name: str = "own") -> Table:
    """A table of a data frame whose rows are in time order.

    Numbers, truth values and times are kept as numbers. Other columns become one column for each of their values, in
    the order in which they first appear; from the 51st on, values share one column, so that no row depends on later
    ones.

    Args:
        frame: features and labels.
        target: the column of the labels.
        name: of the table.

    Raises:
        DataError: names the column that is absent, or the first row without a label.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"t": [1.5, None, 3.0], "sky": ["grey", "blue", "grey"], "rain": ["yes", "no", "no"]})
    >>> table = from_frame(frame, "rain")
    >>> table.features, table.y.tolist(), table.classes
    (('t', 'sky=grey', 'sky=blue'), [1, 0, 0], ('no', 'yes'))
    """
    columns = [str(column) for column in frame.columns]
    if target is None or target not in columns:
        hint = f"choose one of {', '.join(columns)}" if target is None else suggest(target, columns)
        raise DataError(f"{name}: no column of labels {target!r} (data.target): {hint}")
    labels = frame.iloc[:, columns.index(target)]
    if len(missing := np.flatnonzero(labels.isna())):
        raise DataError(f"{name}: {len(missing)} rows have no label, the first is row {missing[0]}: leave them out")
    texts = [_label(label) for label in labels.tolist()]
    classes = _in_order(set(texts))
    numbers = {label: number for number, label in enumerate(classes)}
    blocks = [_encode(column, frame.iloc[:, i]) for i, column in enumerate(columns) if column != target]
    if not blocks:
        raise DataError(f"{name}: there are no columns but the labels")
    return Table(
        name,
        np.concatenate([values for _, values in blocks], axis=1),
        np.array([numbers[text] for text in texts], dtype=np.int64),
        tuple(feature for features, _ in blocks for feature in features),
        tuple(classes),
    )


def _label(label: Any) -> str:
    """Whole numbers are the same label, whether the file holds them as 1 or as 1.0."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _in_order(labels: set[str]) -> list[str]:
    """Numbers by value, texts by letter."""
    try:
        return sorted(labels, key=float)
    except ValueError:
        return sorted(labels)


def _encode(name: str, column: pd.Series[Any]) -> tuple[Sequence[str], NDArray[np.float64]]:
    """The features of one column, with their names."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column):
        seconds = (column - column.iloc[0]).dt.total_seconds()
        return [name], seconds.to_numpy(dtype=np.float64, na_value=np.nan)[:, None]
    if pd.api.types.is_numeric_dtype(column):
        return [name], column.to_numpy(dtype=np.float64, na_value=np.nan)[:, None]
    codes, values = pd.factorize(column)  # in the order in which they appear; -1 where missing
    known = [f"{name}={value}" for value in values[:CATEGORIES]]
    names = known + [f"{name}=(others)"] * (len(values) > CATEGORIES)
    shown = np.minimum(codes, CATEGORIES)
    return names, (shown[:, None] == np.arange(len(names))).astype(np.float64)
