"""`bgd watch`, as a process beside the one that writes the lines."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bgd.cli import main
from bgd.streams.lines import GrowingFile, LineError, Reader
from bgd.streams.watching import Watcher

HEADER = "a,b,sky,label\n"


def lines(n, seed=0, swapped=False):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        a, b = rng.normal(size=2)
        label = "yes" if (a + b > 0) != swapped else "no"
        yield f"{a:.6f},{b:.6f},{'grey' if b > 0 else 'blue'},{label}\n"


def start(*arguments, **options):
    command = [sys.executable, "-m", "bgd", "watch", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def watch(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["watch", *map(str, arguments)])
    out, err = capsys.readouterr()
    return ended.value.code or 0, out, err


def state(folder):
    """All that was saved: the learner's bytes too."""
    (learner,) = folder.glob("learner-*")
    return json.loads((folder / "watch.json").read_text()), learner.read_bytes()


def wait_for(condition, process):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, process.communicate()
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def test_a_growing_file_interrupted_and_continued_is_as_if_never_interrupted(tmp_path, capsys):
    rows = [HEADER, *lines(60), "1,2\n", *lines(60, seed=1)]
    whole, growing = tmp_path / "whole.csv", tmp_path / "growing.csv"
    whole.write_text("".join(rows))
    code, out, err = watch(capsys, whole, "-t", "label", "--checkpoint", tmp_path / "a", "--no-follow")
    assert code == 0
    assert "lines 122; learnt 120; malformed 1 (line 62: 2 values for 4 columns" in out
    assert "skipped line 62: 2 values for 4 columns (a, b, sky, label)" in err

    growing.write_text("".join(rows[:40]))
    folder = tmp_path / "b"
    process = start(growing, "-t", "label", "--checkpoint", folder, "--save-every", 0)
    wait_for(lambda: (folder / "watch.json").exists(), process)
    with growing.open("a") as file:  # in the middle of a line
        file.write("".join(rows[40:80]) + rows[80][:5])
    wait_for(lambda: json.loads((folder / "watch.json").read_text())["counts"]["lines"] == 80, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "lines 80" in out
    with growing.open("a") as file:
        file.write(rows[80][5:] + "".join(rows[81:]))
    assert watch(capsys, growing, "-t", "label", "--checkpoint", folder, "--no-follow")[0] == 0
    assert state(folder) == state(tmp_path / "a")
    again = state(folder)
    assert watch(capsys, growing, "-t", "label", "--checkpoint", folder, "--no-follow")[0] == 0
    assert state(folder) == again, "no line counts twice"


def test_standard_input_predictions_as_json():
    process = start("-", "--target", "label", "--json", stdin=subprocess.PIPE)
    rows = [{"a": i % 7, "b": [], "label": 1} if i == 5 else {"a": i % 7, "label": i % 7 > 3} for i in range(40)]
    text = "".join(json.dumps(row) + "\n" for row in rows) + json.dumps({"a": 6, "label": None})
    out, err = process.communicate(text, timeout=120)
    assert process.returncode == 0, err
    found = [json.loads(line) for line in out.splitlines()]
    assert len(found) == 41
    assert "prediction" not in found[0]
    assert found[5] == {"line": 6, "error": "line 6: 'b' is a list: give a number, a text or null"}
    assert found[39]["prediction"] == found[39]["label"] == "1"
    assert found[39]["surprise"] == pytest.approx(-np.log(found[39]["probability"]))
    assert set(found[40]) == {"line", "prediction", "probability", "std"}
    assert found[40]["prediction"] == "1"


def test_a_change_raises_an_alarm(tmp_path, capsys):
    file = tmp_path / "stream.csv"
    file.write_text("".join([HEADER, *lines(500), *lines(150, seed=1, swapped=True)]))
    code, out, _ = watch(capsys, file, "-t", "label", "--no-follow", "--alarms-per", 1000)
    assert code == 0
    (alarm,) = [line for line in out.splitlines() if line.startswith("ALARM")]
    assert 501 < int(alarm.split()[3].rstrip(":")) < 600


def test_a_killed_watch_continues_from_its_last_checkpoint(tmp_path, capsys):
    file, folder = tmp_path / "stream.csv", tmp_path / "state"
    file.write_text("".join([HEADER, *lines(50)]))
    process = start(file, "-t", "label", "--checkpoint", folder, "--save-every", 0)
    wait_for(lambda: (folder / "watch.json").exists(), process)
    process.kill()
    process.communicate()
    assert watch(capsys, file, "-t", "label", "--checkpoint", folder, "--no-follow")[0] == 0
    assert watch(capsys, file, "-t", "label", "--checkpoint", tmp_path / "whole", "--no-follow")[0] == 0
    assert state(folder) == state(tmp_path / "whole")


def test_drafts_of_a_killed_watch_are_removed(tmp_path, capsys):
    file, folder = tmp_path / "stream.csv", tmp_path / "state"
    file.write_text("".join([HEADER, *lines(20)]))
    folder.mkdir()
    for name in ("learner-7.bgd", "learner-8.bgd.0123.tmp", "watch.json.4567.tmp"):
        (folder / name).write_bytes(b"half")
    assert watch(capsys, file, "-t", "label", "--checkpoint", folder, "--no-follow")[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["learner-21.bgd", "watch.json"]  # a header and 20 rows


def test_numbers_are_predicted_too(tmp_path, capsys):
    file, rng = tmp_path / "numbers.csv", np.random.default_rng(0)
    x = rng.normal(size=300)
    file.write_text("x,y\n" + "".join(f"{a:.6f},{3 * a + 50:.6f}\n" for a in x) + "1.0,\n")
    code, out, _ = watch(capsys, file, "-t", "y", "--regression", "--no-follow", "--json")
    last = json.loads(out.splitlines()[-1])
    assert code == 0
    assert last["prediction"] == pytest.approx(53, abs=0.5)
    assert "label" not in last


def test_a_checkpoint_of_other_options_or_a_damaged_one_is_refused(tmp_path, capsys):
    file, folder = tmp_path / "stream.csv", tmp_path / "state"
    file.write_text("".join([HEADER, *lines(20)]))
    assert watch(capsys, file, "-t", "label", "--checkpoint", folder, "--no-follow")[0] == 0
    code, _, err = watch(capsys, file, "-t", "sky", "--checkpoint", folder, "--no-follow")
    assert (code, "was made with target=label" in err) == (2, True)
    file.write_text(HEADER)
    code, _, err = watch(capsys, file, "-t", "label", "--checkpoint", folder, "--no-follow")
    assert (code, "it was replaced" in err) == (2, True)
    (folder / "watch.json").write_text("{")
    code, _, err = watch(capsys, file, "-t", "label", "--checkpoint", folder, "--no-follow")
    assert (code, "no checkpoint of bgd watch" in err) == (2, True)
    code, _, err = watch(capsys, tmp_path / "none.csv", "-t", "label")
    assert (code, "cannot be read" in err) == (2, True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"\xff\xfe", "no UTF-8"),
        (b'"open', "no line of CSV"),
        (b"1,2", "2 values for 4 columns"),
        (b"inf,2,grey,yes", "'a' is infinite"),
        (b",,,yes", "no values but 'label'"),
    ],
)
def test_a_malformed_line_changes_nothing_but_its_count(line, message):
    watcher = Watcher("label")
    for text in (HEADER, *lines(30)):
        watcher.read(text.encode())
    before, alarm = watcher.estimator.predict_proba([{"a": 1.0}]), watcher.estimator.drift_
    with pytest.raises(LineError, match=f"line 32: .*{message}"):
        watcher.read(line)
    assert (watcher.counts.malformed, watcher.counts.learnt) == (1, 30)
    np.testing.assert_array_equal(watcher.estimator.predict_proba([{"a": 1.0}]), before)
    assert watcher.estimator.drift_ == alarm


@pytest.mark.parametrize(
    ("text", "message"), [(b"[1]", "the first line"), (b'{"a": }', "no JSON"), (b"a,a", "each once")]
)
def test_first_lines_that_say_nothing(text, message):
    if text == b"[1]":
        reader = Reader()
        assert reader.row(b'{"a": 1}') == {"a": 1.0}
        with pytest.raises(LineError, match="a JSON list, not an object"):
            reader.row(text)
        return
    with pytest.raises(LineError, match=message):
        Reader().row(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [('{"a": 1' + "0" * 400 + "}", "'a' is too large a number"), ("[" * 100_000, "no JSON"), ("null", "not an object")],
)
def test_json_that_holds_no_row(text, message):
    reader = Reader(kind="json")
    with pytest.raises(LineError, match=message):
        reader.row(text.encode())


def test_texts_that_look_like_numbers_stay_texts():
    reader = Reader(kind="csv", header=["a", "b"])
    assert reader.row(b"1_000,nan") == {"a": "1_000", "b": None}


def test_a_file_is_read_in_whole_lines(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"one\ntw")
    source = GrowingFile(path)
    assert source.read(0).content == b"one\n"
    assert source.read(0) is None
    with path.open("ab") as file:
        file.write(b"o\n")
    line = source.read(0)
    assert (line.content, line.end) == (b"two\n", os.path.getsize(path))
    source.close()
    rest = GrowingFile(path, 4, follow=False)
    assert (rest.read(0).content, rest.read(0), rest.ended) == (b"two\n", None, True)
    rest.close()
