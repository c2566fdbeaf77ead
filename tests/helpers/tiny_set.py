"""A published data set small enough for tests, in MNIST's own format; processes that a test starts use it too."""

import contextlib
import gzip
import hashlib
import io
import json
import os
import struct
import sys
import tarfile

import numpy as np

from bgd.data.formats import idx
from bgd.data.sources.locate import obtain
from bgd.data.sources.published import Edition, File, Published


def idx_bytes(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def make(seed=0, pixels=28, train=300, test=60):
    generator = np.random.default_rng(seed)
    return {
        "train-images-idx3-ubyte": idx_bytes(generator.integers(0, 256, (train, pixels, pixels), dtype=np.uint8)),
        "train-labels-idx1-ubyte": idx_bytes((np.arange(train) % 10).astype(np.uint8)),
        "t10k-images-idx3-ubyte": idx_bytes(generator.integers(0, 256, (test, pixels, pixels), dtype=np.uint8)),
        "t10k-labels-idx1-ubyte": idx_bytes((np.arange(test) % 10).astype(np.uint8)),
    }


CONTENTS = make()
GZIPPED = {f"{name}.gz": gzip.compress(data) for name, data in CONTENTS.items()}
TINY = Published(
    name="tiny",
    about="noise",
    images="300 + 60",
    classes=tuple("0123456789"),
    folders=("tiny",),
    editions=(
        Edition(
            files=tuple(File(name, hashlib.md5(data).hexdigest()) for name, data in CONTENTS.items()),
            decode=idx.decode,
            suffix=".gz",
        ),
    ),
)


def tar_of(files, mode="w:gz", links=()):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for name, target in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return buffer.getvalue()


def write_files(root, contents=CONTENTS):
    folder = root / "tiny"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return folder


def _obtain() -> None:
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        got = obtain(TINY)
    assert {name: content.data for name, content in got.contents.items()} == CONTENTS
    os.write(1, f"{json.dumps([got.origin, errors.getvalue()])}\n".encode())  # whole lines, whoever else writes


def _obtain_in_forks(count: int) -> None:
    """In as many processes at once, for the price of one start."""
    children = []
    for _ in range(count):
        if not (child := os.fork()):
            _obtain()
            os._exit(0)
        children.append(child)
    assert all(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 for child in children)


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    if sys.argv[1:]:
        _obtain_in_forks(int(sys.argv[1]))
    else:
        _obtain()
