"""Data sets in memory, and where their bytes come from.

``load`` reads one into memory by its name; ``from_npz``, ``from_torch`` and ``from_arrays`` make one of the user's
own; ``pad``, ``to_shape``, ``subset`` and ``limit`` derive one from another.

>>> digits = load("digits")
>>> digits.train.images.dtype, len(digits.classes)
(torch.uint8, 10)
"""

from bgd.data.formats import from_arrays, from_npz, from_torch
from bgd.data.prepare import limit, pad, subset, to_shape
from bgd.data.registry import PUBLISHED, available, load, names, published_names
from bgd.data.types import DataError, DataSet, Part, hold_out

__all__ = [
    "PUBLISHED",
    "DataError",
    "DataSet",
    "Part",
    "available",
    "from_arrays",
    "from_npz",
    "from_torch",
    "hold_out",
    "limit",
    "load",
    "names",
    "pad",
    "published_names",
    "subset",
    "to_shape",
]
