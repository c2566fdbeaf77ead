"""The order of sources, and what each kind of file in the user's own folder leads to."""

import gzip
import hashlib
import os
from pathlib import Path

import pytest
import torch
from tiny_set import CONTENTS, GZIPPED, TINY

import bgd.data
from bgd.data import DataError
from bgd.data.sources import files
from bgd.data.sources.files import Status
from bgd.data.sources.locate import at_hand, cache_folder, data_folder, obtain

# the machine's own data, before the tests are cut off from it
MACHINE_DATA = os.environ.get("BGD_DATA")


def put(root, contents=CONTENTS):
    folder = root / "tiny"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return folder


def test_argument_then_environment_then_cache_then_mirror(monkeypatch, tmp_path, cache, serve):
    server = serve({f"tiny/{name}": data for name, data in GZIPPED.items()})
    monkeypatch.setenv("BGD_MIRROR", server.url)
    for name in ("named", "environment"):
        put(tmp_path / name)
    monkeypatch.setenv("BGD_DATA", str(tmp_path / "environment"))
    assert obtain(TINY, tmp_path / "named").origin == f"folder {tmp_path / 'named'}"
    assert obtain(TINY).origin == f"folder {tmp_path / 'environment'}"
    (tmp_path / "environment/tiny/t10k-labels-idx1-ubyte").unlink()  # an incomplete folder is passed over
    put(cache)
    assert obtain(TINY).origin == f"cache {cache}"
    assert server.requests == []
    (cache / "tiny/t10k-labels-idx1-ubyte").unlink()
    assert obtain(TINY).origin == f"{server.url}/tiny"


def test_complete_cache_is_read_without_a_lock(monkeypatch, cache):
    put(cache)
    monkeypatch.setattr("bgd.data.sources.locate.only_one", None)
    assert obtain(TINY).origin == f"cache {cache}"


def test_folders_are_named_in_errors(monkeypatch, tmp_path):
    monkeypatch.setenv("BGD_DATA", str(tmp_path / "none"))
    with pytest.raises(DataError, match=r"none, named by BGD_DATA, is not a folder"):
        data_folder()
    monkeypatch.delenv("BGD_CACHE")
    assert cache_folder().name == "bgd"


def test_at_hand_looks_without_reading(tmp_path):
    assert at_hand(TINY, tmp_path) is None
    put(tmp_path, dict.fromkeys(CONTENTS, b"unread"))
    assert at_hand(TINY, tmp_path)[0] == tmp_path


@pytest.mark.parametrize("where", [".", "tiny"])
def test_what_a_file_may_be(tmp_path, where):
    folder = put(tmp_path, GZIPPED)
    file, path = TINY.editions[0].files[0], folder / "train-images-idx3-ubyte.gz"

    def status():
        return files.check_file(file, path, tmp_path).status

    assert status() is Status.PUBLISHED
    path.write_bytes(gzip.compress(CONTENTS[file.name], 1))  # compressed in another way: the content counts
    assert status() is Status.PUBLISHED
    path.write_bytes(other := gzip.compress(CONTENTS[file.name][:-1] + b"?"))
    assert status() is Status.UNKNOWN
    sums = tmp_path / where / "SHA256SUMS"
    name = path.name if where == "tiny" else f"./tiny/{path.name}"
    sums.write_text(f"{'0' * 64}  another\n{hashlib.sha256(other).hexdigest().upper()} *{name}\n")
    assert status() is Status.LISTED
    path.write_bytes(gzip.compress(CONTENTS[file.name][:-2] + b"??"))
    assert status() is Status.DAMAGED
    path.write_bytes(other[:-20])
    assert status() is Status.DAMAGED


def test_sums_outside_the_named_folder_do_not_count(tmp_path):
    folder = put(tmp_path / "data", {**CONTENTS, "train-images-idx3-ubyte": b"other"})
    digest = hashlib.sha256(b"other").hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{digest}  ./data/tiny/train-images-idx3-ubyte\n")
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte: not the published file"):
        obtain(TINY, tmp_path / "data")
    (folder.parent / "SHA256SUMS").write_text(f"{digest}  ./tiny/train-images-idx3-ubyte\n")
    assert not obtain(TINY, tmp_path / "data").published


def test_every_wrong_file_is_named(tmp_path):
    put(tmp_path, {name: data[:-1] for name, data in CONTENTS.items()})
    with pytest.raises(DataError) as error:
        obtain(TINY, tmp_path)
    assert len(str(error.value).splitlines()) == len(CONTENTS)


def test_cache_admits_files_that_are_published_or_vouched_for(cache, monkeypatch):
    monkeypatch.setenv("BGD_OFFLINE", "1")
    put(cache, {name: data[:-1] for name, data in CONTENTS.items()})
    with pytest.raises(DataError, match=r"no source has it"):
        obtain(TINY)
    lines = [f"{hashlib.sha256(data[:-1]).hexdigest()}  {name}" for name, data in CONTENTS.items()]
    (cache / "tiny/SHA256SUMS").write_text("\n".join(lines))
    monkeypatch.delenv("BGD_OFFLINE")
    assert not obtain(TINY).published
    assert len(list(cache.rglob("*-ubyte"))) == len(CONTENTS), "nothing was taken away"


def test_digits_need_no_source(monkeypatch):
    monkeypatch.setenv("BGD_OFFLINE", "1")
    digits = bgd.data.load()
    assert digits.train.images.dtype == torch.uint8
    assert (int(digits.train.images.min()), int(digits.train.images.max())) == (0, 255)
    assert len(digits.train) + len(digits.test) == 1797
    assert torch.unique(torch.cat([digits.train.images, digits.test.images])).numel() == 17
    assert torch.equal(digits.train.images, bgd.data.load("digits").train.images)


@pytest.mark.skipif(
    MACHINE_DATA is None or not Path(MACHINE_DATA, "mnist").is_dir(),
    reason="BGD_DATA does not name a folder that holds MNIST",
)
def test_real_mnist():
    mnist = bgd.data.load("mnist", MACHINE_DATA)
    assert mnist.train.images.shape == (60_000, 1, 28, 28)
    assert mnist.train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert mnist.test.labels.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert float(mnist.train.images.double().mean() / 255) == pytest.approx(0.1307, abs=5e-5)
