"""Labels of any type and the whole numbers that stand for them, in the order of their first example."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bgd.errors import SettingError


@dataclass
class Labels:
    """The classes so far.

    >>> labels = Labels()
    >>> labels.add(["b", "a", "b"]).tolist(), labels.names
    ([0, 1, 0], ['b', 'a'])
    """

    names: list[Any] = field(default_factory=list)
    codes: dict[Hashable, int] = field(default_factory=dict)

    def check(self, values: Iterable[Any]) -> None:
        """Refuse labels of another type than those before, which would silently become new classes.

        >>> labels = Labels()
        >>> _ = labels.add([0, 1])
        >>> labels.check(["1"])
        Traceback (most recent call last):
        bgd.errors.SettingError: label '1' is of type str, but the labels so far are of type int: convert them first
        """
        known = self.names[0] if self.names else None
        for value in {type(value): value for value in values}.values():
            known = value if known is None else known
            if (kind := _kind(value)) != _kind(known):
                raise SettingError(
                    f"label {value!r} is of type {kind}, but the labels so far are of type {_kind(known)}: "
                    "convert them first"
                )

    def add(self, values: Iterable[Any]) -> NDArray[np.int64]:
        """The codes of labels, with new ones for new labels."""
        return np.array([self.codes[v] if v in self.codes else self.code(v) for v in values], dtype=np.int64)

    def code(self, value: Any) -> int:
        """The code of a label, a new one for a new label."""
        code = self.codes.setdefault(value, len(self.names))
        if code == len(self.names):
            self.names.append(value)
        return code


def _kind(value: object) -> str:
    """Numbers are of one type, whatever their width."""
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, int | float | np.integer | np.floating):
        return "int"
    return "str" if isinstance(value, str) else type(value).__name__
