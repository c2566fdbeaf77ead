"""One file per format: from bytes, arrays or items to a data set in memory."""

from bgd.data.formats.arrays import from_arrays
from bgd.data.formats.npz import from_npz
from bgd.data.formats.torch_dataset import from_torch

__all__ = ["from_arrays", "from_npz", "from_torch"]
