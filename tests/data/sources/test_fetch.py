"""Mirrors on a real HTTP server: whatever it does, the bytes are right or the error is clear."""

import gzip
import hashlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import tiny_set
from tiny_set import CONTENTS, GZIPPED, TINY

from bgd.data import DataError
from bgd.data.formats import cifar
from bgd.data.sources import download
from bgd.data.sources.locate import obtain
from bgd.data.sources.published import Edition, File, Published

FILES = {f"tiny/{name}": data for name, data in GZIPPED.items()}
IMAGES = "/tiny/train-images-idx3-ubyte.gz"


def fetched():
    got = obtain(TINY)
    assert {name: content.data for name, content in got.contents.items()} == CONTENTS
    return got


def files_in(cache):
    """Every file in the cache but locks: what a failed fetch leaves behind."""
    return sorted(path.name for path in cache.rglob("*") if path.is_file() and path.name != ".lock")


def mirrors(monkeypatch, *served):
    monkeypatch.setenv("BGD_MIRROR", " ".join(server.url for server in served))


def test_fetches_once_then_reads_the_cache(serve, monkeypatch, cache):
    server = serve(FILES)
    mirrors(monkeypatch, server)
    assert fetched().origin == f"{server.url}/tiny"
    assert files_in(cache) == sorted(CONTENTS)
    assert fetched().origin == f"cache {cache}"
    assert len(server.requests) == len(CONTENTS)


def test_slow_server(serve, monkeypatch):
    server = serve(FILES, behaviour=["slow"])
    mirrors(monkeypatch, server)
    fetched()
    assert len(server.requests) == len(CONTENTS)


def test_after_a_failing_mirror_the_next_is_tried(serve, monkeypatch):
    first, second = serve(FILES, behaviour=["failing"]), serve(FILES)
    mirrors(monkeypatch, first, second)
    assert fetched().origin == f"{second.url}/tiny"
    assert len(first.requests) == 1


def test_after_an_unreachable_mirror_the_next_is_tried(serve, monkeypatch):
    gone, second = serve(FILES), serve(FILES)
    gone.stop()
    gone.stop = lambda: None
    mirrors(monkeypatch, gone, second)
    fetched()


def test_unreachable_mirror_is_tried_once_for_all_editions(serve, monkeypatch):
    gone = serve({})
    gone.stop()
    gone.stop = lambda: None
    mirrors(monkeypatch, gone)
    with pytest.raises(DataError) as error:
        obtain(cifar.CIFAR100)
    assert str(error.value).count("not reachable") == 1


def test_second_mirror_only_serves_what_the_first_lacked(serve, monkeypatch):
    first, second = serve(FILES), serve(FILES)
    del first.files["/tiny/t10k-images-idx3-ubyte.gz"]
    mirrors(monkeypatch, first, second)
    fetched()
    assert [path for path, _ in second.requests] == [
        "/tiny/t10k-images-idx3-ubyte.gz",
        "/tiny/t10k-labels-idx1-ubyte.gz",
    ]


def test_truncated_download_resumes_where_it_was_interrupted(serve, monkeypatch):
    server = serve(FILES)
    server.behaviours[IMAGES] = ["interrupted", "interrupted", "plain"]
    mirrors(monkeypatch, server)
    fetched()
    size = len(FILES[IMAGES[1:]])
    half = size // 2
    rest = (size - half) // 2
    assert [range_ for path, range_ in server.requests if path == IMAGES] == [
        None,
        f"bytes={half}-",
        f"bytes={half + rest}-",
    ]
    assert server.sent == sum(map(len, FILES.values()))  # not one byte twice


def test_stalled_download_times_out_and_resumes(serve, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", (1.0, 0.2))
    server = serve(FILES)
    server.behaviours[IMAGES] = ["stalling", "plain"]
    mirrors(monkeypatch, server)
    fetched()
    assert [range_ is not None for path, range_ in server.requests if path == IMAGES] == [False, True]


def test_server_without_ranges_starts_again(serve, monkeypatch):
    server = serve(FILES)
    server.behaviours[IMAGES] = ["rangeless interrupted", "rangeless"]
    mirrors(monkeypatch, server)
    fetched()


def test_server_that_ignores_a_range_does_not_double_the_bytes(serve, monkeypatch):
    server = serve(FILES)
    server.behaviours[IMAGES] = ["interrupted", "rangeless"]
    mirrors(monkeypatch, server)
    fetched()


def test_answer_with_another_range_is_rejected(serve, monkeypatch):
    server = serve(FILES)
    server.behaviours[IMAGES] = ["interrupted", "confused", "plain"]
    mirrors(monkeypatch, server)
    fetched()


@pytest.mark.parametrize("behaviour", ["rangeless interrupted", "wrong", "failing", "missing"])
def test_failing_server_is_named_and_leaves_nothing_behind(serve, monkeypatch, cache, behaviour):
    server = serve(FILES, behaviour=[behaviour])
    mirrors(monkeypatch, server)
    with pytest.raises(DataError) as error:
        obtain(TINY)
    assert f"{server.url}{IMAGES}" in str(error.value)
    assert files_in(cache) == []


def test_wrong_bytes_of_one_mirror_are_not_used(serve, monkeypatch):
    first, second = serve(FILES, behaviour=["wrong"]), serve(FILES)
    mirrors(monkeypatch, first, second)
    assert fetched().origin == f"{second.url}/tiny"


def test_valid_gzip_of_other_content_is_rejected(serve, monkeypatch, cache):
    other = tiny_set.make(seed=1)
    server = serve({f"tiny/{name}.gz": gzip.compress(data) for name, data in other.items()})
    mirrors(monkeypatch, server)
    with pytest.raises(DataError, match=r"wrong bytes .train-images-idx3-ubyte has md5"):
        obtain(TINY)
    assert files_in(cache) == []


def test_server_that_unpacks_on_the_way(serve, monkeypatch):
    server = serve({f"tiny/{name}.gz": data for name, data in CONTENTS.items()})
    mirrors(monkeypatch, server)
    fetched()


def test_interrupted_download_is_resumed_by_the_next_fetch(serve, monkeypatch, cache):
    server = serve(FILES)
    server.behaviours[IMAGES] = ["interrupted", "failing"]
    mirrors(monkeypatch, server)
    with pytest.raises(DataError, match=r"500"):
        obtain(TINY)
    assert [path for path in cache.rglob("*ubyte") if ".partial" not in path.parts] == []
    server.behaviours[IMAGES] = ["plain"]
    fetched()
    assert server.requests[2] == (IMAGES, f"bytes={len(FILES[IMAGES[1:]]) // 2}-")
    assert files_in(cache) == sorted(CONTENTS)


@pytest.mark.parametrize("garbage", [b"not the beginning", bytes(10**6)], ids=["short", "longer than the file"])
def test_wrong_partial_download_is_downloaded_again(serve, monkeypatch, cache, garbage):
    server = serve(FILES)
    server.behaviours[IMAGES] = ["interrupted", "failing"]
    mirrors(monkeypatch, server)
    with pytest.raises(DataError):
        obtain(TINY)
    (part,) = (cache / "tiny/.partial").iterdir()
    part.write_bytes(garbage)
    server.behaviours[IMAGES] = ["plain"]
    fetched()


def test_damaged_cache_is_reported_and_fetched_again(serve, monkeypatch, cache, capsys):
    server = serve(FILES)
    mirrors(monkeypatch, server)
    fetched()
    damaged = cache / "tiny" / "t10k-images-idx3-ubyte"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    fetched()
    assert f"{damaged} is damaged" in capsys.readouterr().err
    assert [path for path, _ in server.requests[4:]] == ["/tiny/t10k-images-idx3-ubyte.gz"]


def test_damaged_cache_without_a_source_is_named_and_set_aside(monkeypatch, cache, capsys):
    (cache / "tiny").mkdir(parents=True)
    for name, data in CONTENTS.items():
        (cache / "tiny" / name).write_bytes(data)
    damaged = cache / "tiny" / "t10k-images-idx3-ubyte"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    monkeypatch.setenv("BGD_OFFLINE", "1")
    with pytest.raises(DataError, match=f"{damaged} is damaged"):
        obtain(TINY)
    monkeypatch.delenv("BGD_OFFLINE")
    with pytest.raises(DataError, match=f"{damaged} is damaged"):
        obtain(TINY)
    assert f"set aside as {damaged.name}.damaged" in capsys.readouterr().err
    assert damaged.with_name(f"{damaged.name}.damaged").exists()
    assert files_in(cache) == sorted(set(CONTENTS) - {damaged.name} | {f"{damaged.name}.damaged"})


def test_offline_sends_no_request(serve, monkeypatch, cache):
    server = serve(FILES)
    mirrors(monkeypatch, server)
    monkeypatch.setenv("BGD_OFFLINE", "1")
    with pytest.raises(DataError, match=r"BGD_OFFLINE"):
        obtain(TINY)
    assert server.requests == []
    assert not cache.exists()


def test_without_any_source_the_error_names_the_files_and_the_folder(cache, tmp_path):
    with pytest.raises(DataError) as error:
        obtain(TINY, tmp_path)
    for file in TINY.editions[0].files:
        assert f"{file.name}.gz  (unpacked md5 {file.md5})" in str(error.value)
    assert str(cache / "tiny") in str(error.value)
    assert str(tmp_path / "tiny") in str(error.value)
    # and following it helps
    for name, data in GZIPPED.items():
        (cache / "tiny" / name).write_bytes(data)
    assert fetched().origin == f"cache {cache}"


def test_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BGD_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(DataError, match=r"name another folder with BGD_CACHE"):
        obtain(TINY)


def test_full_disk_is_reported_and_leaves_no_half_file(serve, monkeypatch, cache):
    mirrors(monkeypatch, serve(FILES))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(DataError, match=r"cannot keep tiny in the cache: .*name another folder with BGD_CACHE"):
            obtain(TINY)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path for path in cache.rglob("*ubyte*") if ".partial" not in path.parts] == []
    fetched()


@pytest.mark.parametrize("address", ["no-address", "gopher://127.0.0.1"])
def test_mirror_that_is_no_address_is_named(monkeypatch, address):
    monkeypatch.setenv("BGD_MIRROR", address)
    with pytest.raises(DataError, match=f"\n  {address}/tiny/train-images"):
        obtain(TINY)


def test_archive_from_a_mirror(serve, monkeypatch, cache):
    contents = {"train.bin": bytes([4, 7]) + bytes(3072), "test.bin": bytes([5, 8]) + bytes(3072)}
    edition = cifar.CIFAR100.editions[1]
    files = tuple(File(name, hashlib.md5(data).hexdigest()) for name, data in contents.items())
    small = Edition(files, edition.decode, archive=edition.archive, folder=edition.folder)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in contents.items():
            member = tarfile.TarInfo(f"{edition.folder}/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    server = serve({f"cifar100/{edition.archive}": buffer.getvalue()}, behaviour=["interrupted", "plain"])
    mirrors(monkeypatch, server)
    got = obtain(Published("cifar100", "", "", cifar.CIFAR100.classes, (small,), ("cifar100",)))
    train, test = got.edition.decode(got.contents)
    assert (train.labels.tolist(), test.labels.tolist()) == ([7], [8])
    assert files_in(cache) == ["test.bin", "train.bin"]


def start_process(*arguments):
    script = Path(tiny_set.__file__)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, str(script), *arguments], text=True, **pipes)
    assert process.stdout.readline() == "ready\n"
    return process


def release(process):
    process.stdin.write("go\n")
    process.stdin.flush()


def in_processes(count):
    """Fetch in processes at once; their origins, sorted, and all that they print on stderr."""
    process = start_process(str(count))
    release(process)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    answers = [json.loads(line) for line in out.splitlines()]
    return sorted(origin for origin, _ in answers), "".join(text for _, text in answers)


def test_two_processes_at_once_fetch_once(serve, monkeypatch, cache):
    server = serve(FILES, behaviour=["slow"])
    mirrors(monkeypatch, server)
    origins, errors = in_processes(2)
    assert sorted(path for path, _ in server.requests) == sorted(f"/{path}" for path in FILES)
    assert origins == sorted([f"{server.url}/tiny", f"cache {cache}"])
    assert "another process is fetching tiny" in errors


def test_eight_processes_fetch_from_a_slow_failing_truncating_server(serve, monkeypatch, cache):
    server = serve(FILES, behaviour=["slow"])
    server.behaviours[IMAGES] = ["interrupted", "slow"]
    mirrors(monkeypatch, serve(FILES, behaviour=["failing"]), server)
    origins, _ = in_processes(8)
    assert server.sent == sum(map(len, FILES.values()))  # once, and not one byte twice
    assert origins == sorted([f"{server.url}/tiny", *[f"cache {cache}"] * 7])
    assert files_in(cache) == sorted(CONTENTS)


def test_killed_process_leaves_a_download_that_the_next_one_resumes(serve, monkeypatch, cache):
    server = serve(FILES)
    server.behaviours[IMAGES] = ["stalling", "plain"]
    mirrors(monkeypatch, server)
    process = start_process()
    release(process)
    while not any(path.stat().st_size for path in (cache / "tiny/.partial").glob("*")):
        assert process.poll() is None, process.communicate()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    fetched()
    second = [range_ for path, range_ in server.requests if path == IMAGES][1]
    assert second is not None
    assert second.startswith("bytes=")
    assert files_in(cache) == sorted(CONTENTS)
