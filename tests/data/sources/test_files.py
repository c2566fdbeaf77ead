"""The status of a file by its bytes and the SHA256SUMS around it."""

import gzip
import hashlib

import pytest
from tiny_set import CONTENTS, GZIPPED, TINY, write_files

from bgd.data.sources.files import Status, check_file


@pytest.mark.parametrize("where", [".", "tiny"])
def test_status_of_a_file(tmp_path, where):
    folder = write_files(tmp_path, GZIPPED)
    file, path = TINY.editions[0].files[0], folder / "train-images-idx3-ubyte.gz"

    def status():
        return check_file(file, path, tmp_path).status

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
