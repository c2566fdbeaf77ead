"""The order of sources, and what each kind of file in the user's own folder leads to."""

import hashlib

import pytest
from tiny_set import CONTENTS, GZIPPED, TINY, write_files

from bgd.data import DataError
from bgd.data.sources.locate import cache_folder, data_folder, find_local, obtain


def test_argument_then_environment_then_cache_then_mirror(monkeypatch, tmp_path, cache, serve):
    server = serve({f"tiny/{name}": data for name, data in GZIPPED.items()})
    monkeypatch.setenv("BGD_MIRROR", server.url)
    for name in ("named", "environment"):
        write_files(tmp_path / name)
    monkeypatch.setenv("BGD_DATA", str(tmp_path / "environment"))
    assert obtain(TINY, tmp_path / "named").origin == f"folder {tmp_path / 'named'}"
    assert obtain(TINY).origin == f"folder {tmp_path / 'environment'}"
    (tmp_path / "environment/tiny/t10k-labels-idx1-ubyte").unlink()  # an incomplete folder is skipped
    write_files(cache)
    assert obtain(TINY).origin == f"cache {cache}"
    assert server.requests == []
    (cache / "tiny/t10k-labels-idx1-ubyte").unlink()
    assert obtain(TINY).origin == f"{server.url}/tiny"


def test_complete_cache_is_read_without_a_lock(monkeypatch, cache):
    write_files(cache)
    monkeypatch.setattr("bgd.data.sources.fetch.hold_lock", None)
    assert obtain(TINY).origin == f"cache {cache}"


def test_folders_are_named_in_errors(monkeypatch, tmp_path):
    monkeypatch.setenv("BGD_DATA", str(tmp_path / "none"))
    with pytest.raises(DataError, match=r"none, named by BGD_DATA, is not a folder"):
        data_folder()
    monkeypatch.delenv("BGD_CACHE")
    assert cache_folder().name == "bgd"


def test_local_files_are_found_without_reading(tmp_path):
    assert find_local(TINY, tmp_path) is None
    write_files(tmp_path, dict.fromkeys(CONTENTS, b"unread"))
    assert find_local(TINY, tmp_path)[0] == tmp_path


def test_sums_outside_the_named_folder_do_not_count(tmp_path):
    folder = write_files(tmp_path / "data", {**CONTENTS, "train-images-idx3-ubyte": b"other"})
    digest = hashlib.sha256(b"other").hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{digest}  ./data/tiny/train-images-idx3-ubyte\n")
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte: not the published file"):
        obtain(TINY, tmp_path / "data")
    (folder.parent / "SHA256SUMS").write_text(f"{digest}  ./tiny/train-images-idx3-ubyte\n")
    assert not obtain(TINY, tmp_path / "data").published


def test_every_wrong_file_is_named(tmp_path):
    write_files(tmp_path, {name: data[:-1] for name, data in CONTENTS.items()})
    with pytest.raises(DataError) as error:
        obtain(TINY, tmp_path)
    assert len(str(error.value).splitlines()) == len(CONTENTS)


def test_cache_accepts_files_that_are_published_or_listed(cache, monkeypatch):
    monkeypatch.setenv("BGD_OFFLINE", "1")
    write_files(cache, {name: data[:-1] for name, data in CONTENTS.items()})
    with pytest.raises(DataError, match=r"no source has it"):
        obtain(TINY)
    lines = [f"{hashlib.sha256(data[:-1]).hexdigest()}  {name}" for name, data in CONTENTS.items()]
    (cache / "tiny/SHA256SUMS").write_text("\n".join(lines))
    monkeypatch.delenv("BGD_OFFLINE")
    assert not obtain(TINY).published
    assert len(list(cache.rglob("*-ubyte"))) == len(CONTENTS), "nothing was deleted"
