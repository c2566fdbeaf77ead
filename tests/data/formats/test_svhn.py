"""SVHN on small files made in its format."""

import hashlib
import io

import numpy as np
import pytest
import scipy.io

import bgd.data
from bgd.data import DataError
from bgd.data.formats import svhn
from bgd.data.sources.published import Content

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 3, 32, 32), dtype=np.uint8)
LABELS = np.array([10, 1, 9, 10, 5], np.uint8)


def mat(compress=True, **arrays):
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, arrays, do_compression=compress)
    return buffer.getvalue()


def published_form(images=IMAGES, labels=LABELS):
    return mat(X=images.transpose(2, 3, 1, 0), y=labels[:, None])


def test_ten_is_the_digit_zero_and_images_are_channels_first():
    part = svhn.read_mat(Content("a.mat", published_form()))
    assert part.labels.tolist() == [0, 1, 9, 0, 5]
    assert np.array_equal(part.images, IMAGES)
    assert part.images.is_contiguous()


def test_a_single_image():
    part = svhn.read_mat(Content("a.mat", mat(X=IMAGES[0].transpose(1, 2, 0), y=LABELS[:1, None])))
    assert np.array_equal(part.images, IMAGES[:1])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (published_form()[:-500], "truncated or damaged"),
        (published_form()[:100], "truncated or damaged"),
        (b"", "truncated or damaged"),
        (b"\x89HDF not a mat file" * 40, "truncated or damaged"),
        (mat(X=IMAGES.transpose(2, 3, 1, 0)), "no array named y"),
        (mat(Z=1), "no array named X nor y"),
        (published_form(labels=LABELS[:4]), "5 images in X but 4 labels in y"),
        (published_form(labels=LABELS + 1), "labels in y must be 1 to 10, found 2 to 11"),
        (published_form(labels=LABELS * 0.5), "labels in y must be 1 to 10"),
        (published_form(labels=LABELS * np.nan), "labels in y must be 1 to 10"),
        (published_form(images=IMAGES / 255), "X should be uint8"),
        (mat(X=IMAGES, y=LABELS[:, None]), "X should be uint8 H x W x 3 x N"),
    ],
    ids=range(12),  # the bytes hold the time of day: they would name the case differently in each worker
)
def test_wrong_file_is_named(data, message):
    with pytest.raises(DataError, match=f"^some/train.mat: {message}"):
        svhn.read_mat(Content("some/train.mat", data))


def test_files_that_are_not_the_published_ones_must_be_listed(tmp_path):
    folder = tmp_path / "svhn"
    folder.mkdir()
    for name in ("train_32x32.mat", "test_32x32.mat"):
        (folder / name).write_bytes(published_form())
    with pytest.raises(DataError, match=r"not the published file .* sha256sum 'train_32x32.mat' >> SHA256SUMS"):
        bgd.data.load("svhn", tmp_path)
    digest = hashlib.sha256(published_form()).hexdigest()
    (tmp_path / "SHA256SUMS").write_text("".join(f"{digest}  ./svhn/{n}_32x32.mat\n" for n in ("train", "test")))
    loaded = bgd.data.load("svhn", tmp_path)
    assert loaded.train.labels.tolist() == [0, 1, 9, 0, 5]
    assert loaded.note == "not the published files, but 5 + 5 images that a SHA256SUMS lists"
    (folder / "test_32x32.mat").write_bytes(published_form()[:-1])
    with pytest.raises(DataError, match=r"test_32x32.mat: damaged: .*SHA256SUMS lists"):
        bgd.data.load("svhn", tmp_path)
