"""Downloads and files that mean harm: nothing in them runs, leaves its folder, or fills the memory."""

import gzip
import io
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_set import CONTENTS, tar_of

from bgd.data import DataError
from bgd.data.formats.npz import from_npz
from bgd.data.sources import archives


class Evil:
    """Pickled, it writes a file when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def test_an_npz_of_objects_is_refused_and_not_unpickled(tmp_path):
    mark = tmp_path / "ran"
    for name in ("train", "test"):
        images = np.array([Evil(mark)], dtype=object)
        np.savez(tmp_path / f"{name}.npz", images=images, labels=np.zeros(1, int))
    mark.unlink(missing_ok=True)
    with pytest.raises(
        DataError, match=r"train\.npz: not a readable \.npz file of plain arrays \(Object arrays cannot"
    ):
        from_npz(tmp_path)
    assert not mark.exists()


def test_a_pickle_in_the_place_of_an_npz_is_refused(tmp_path):
    mark = tmp_path / "ran"
    for name in ("train", "test"):
        (tmp_path / f"{name}.npz").write_bytes(pickle.dumps(Evil(mark)))
    with pytest.raises(DataError, match="not a readable"):
        from_npz(tmp_path)
    assert not mark.exists()


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr(archives, "LARGEST", 1 << 20)
    bomb = gzip.compress(bytes(1 << 25))
    assert len(bomb) < 1 << 16
    with pytest.raises(archives.DAMAGE, match="more than 1,048,576 bytes when unpacked"):
        archives.gunzip(bomb)
    assert archives.gunzip(gzip.compress(bytes(1 << 20))) == bytes(1 << 20)


def test_a_bomb_in_an_archive_is_refused(monkeypatch):
    monkeypatch.setattr(archives, "LARGEST", 1 << 20)
    name = next(iter(CONTENTS))
    for files in ({name: bytes(1 << 21)}, {"package/another": bytes(1 << 21), name: b"x"}):
        with pytest.raises(archives.DAMAGE, match="is larger than"):
            archives.read_members(tar_of(files), (name,))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
def test_what_is_no_regular_file_is_not_read(kind, tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo("data")
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member)
        outside = tarfile.TarInfo("../../outside")
        outside.size = 1
        tar.addfile(outside, io.BytesIO(b"x"))
    with pytest.raises(KeyError, match="no regular file data"):
        archives.read_members(buffer.getvalue(), ("data",))


def test_a_checkpoint_of_code_is_not_run(tmp_path):
    mark = tmp_path / "ran"
    torch.save({"state": Evil(mark)}, tmp_path / "file.pt")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "file.pt", weights_only=True)
    assert not mark.exists()
