"""Data sets of random bytes, small enough for tests."""

import numpy as np
import torch

from bgd.data import DataSet, Part


def make_part(n, shape=(1, 4, 4), classes=10, *, seed=0, dtype=torch.uint8):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (n, *shape), generator=generator, dtype=torch.uint8)
    if dtype is torch.float32:
        images = images.float() / 255
    return Part(images, torch.from_numpy(np.arange(n) % classes))


def make_data(n=103, shape=(1, 4, 4), classes=10, *, name="bytes", seed=0, dtype=torch.uint8):
    names = tuple(f"c{c}" for c in range(classes))
    train = make_part(n, shape, classes, seed=seed, dtype=dtype)
    test = make_part(41, shape, classes, seed=seed + 1, dtype=dtype)
    return DataSet(name, train, test, names)


def save_npz(folder, **arrays):
    """Write the same arrays as train and as test part."""
    folder.mkdir(exist_ok=True)
    for which in ("train", "test"):
        np.savez(folder / f"{which}.npz", **arrays)
    return folder
