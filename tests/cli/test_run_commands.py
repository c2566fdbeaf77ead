"""The command, as users and scripts call it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bgd.cli import main
from bgd.experiments.execution import recorded_machine
from bgd.experiments.reuse import code_digest
from bgd.methods import SGD

SMALL = ["--row", "SGD", "--row", "adam", "--column", "new classes, no replay", "--jobs", "1"]


@pytest.fixture(autouse=True)
def _own_results(tmp_path, monkeypatch):
    monkeypatch.setenv("BGD_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("BGD_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def bgd(capsys):
    """Run the command; returns its exit code, stdout and stderr."""

    def bgd(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return bgd


def test_list_and_show(bgd):
    code, out, _ = bgd("list")
    assert code == 0
    assert "labels-trick" in out
    code, out, _ = bgd("show", "labels-trick", "--preset", "paper")
    assert code == 0
    assert "46.34 ± 2.36" in out
    assert "std_init=0.017" in out
    code, out, _ = bgd("list", "--json")
    assert {record["name"] for record in json.loads(out)} >= {"digits", "mc-samples"}
    code, out, _ = bgd("show", "digits", "-p", "smoke", "--json")
    assert {config["row"] for config in json.loads(out)} >= {"BGD", "SGD", "Adam", "Online EWC"}


def test_the_demo_end_to_end(bgd, tmp_path):
    code, out, err = bgd("run", "digits", "--preset", "smoke", "--row", "BGD", "--row", "online-ewc", "--jobs", "2")
    assert code == 0, err
    assert "[6/6]" in err
    assert "Online EWC" in out
    assert f"bgd report {tmp_path}/runs/digits-smoke" in out
    code, out, err = bgd("run", "digits", "--preset", "smoke", "--row", "BGD", "--row", "online-ewc")
    assert code == 0
    assert "6 runs finished before" in out
    assert "[1/" not in err


def test_quiet_and_json(bgd, tmp_path):
    code, out, err = bgd("run", "digits", "-p", "smoke", *SMALL, "--quiet")
    assert (code, out, err) == (0, "", "")
    code, out, err = bgd("run", "digits", "-p", "smoke", *SMALL, "--seeds", "2019,2020", "--json")
    assert code == 0
    assert err == ""
    record = json.loads(out)
    assert record["comparisons"][0]["experiment"] == "digits"
    assert [(run["row"], run["seed"], run["new"]) for run in record["runs"]] == [
        ("SGD", 2019, False),
        ("Adam", 2019, False),
        ("SGD", 2020, True),
        ("Adam", 2020, True),
    ]
    assert all(0 <= run["average_accuracy"] <= 1 for run in record["runs"])


def test_overrides_get_a_folder_of_their_own(bgd, tmp_path):
    assert bgd("run", "digits", "-p", "smoke", *SMALL, "--set", "sgd.lr=0.5", "--out", tmp_path / "o", "-q")[0] == 0
    (folder,) = (tmp_path / "o").iterdir()
    assert folder.name == "digits-smoke--sgd.lr=0.5"
    configs = [json.loads(path.read_text()) for path in folder.glob("*/config.json")]
    assert [config["settings"]["lr"] for config in configs if config["row"] == "SGD"] == [0.5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "digts"], "did you mean 'digits'?"),
        (["run", "digits", "--preset", "smal"], "no preset 'smal'"),
        (["run", "digits", "--row", "agd"], "no row 'agd'"),
        (["run", "digits", "--column", "x"], "no column 'x'"),
        (["run", "digits", "--seeds", "a"], "2019-2021"),
        (["run", "digits", "--set", "stream.epoch=1"], "did you mean 'epochs'?"),
        (["run", "digits", "--column", "fading tasks", "--set", "stream.epochs=2"], "has no effect"),
        (["run", "digits", "--jobs", "-1"], "--jobs"),
        (["run", "no.toml"], "cannot be read"),
        (["show", "digts"], "did you mean 'digits'?"),
        (["run", "{folder}/broken.toml"], "not TOML"),
        (["run", "{folder}/no_data.toml"], "is not a folder"),
        (["run", "{folder}/no_module.toml"], "no method 'nowhere:Method'|cannot import nowhere"),
        (["run", "digits", "--executor", "threads"], "threads"),
        (["run", "digits", "--executor", "serial", "--ray-address", "a:1"], "needs the executor ray"),
        (["run", "digits", "-p", "smoke", "--device", "abacus"], "device 'abacus' cannot be used"),
        (["run", "digits", "-p", "smoke", "--out", "{folder}/broken.toml"], "cannot write"),
        (["resume", "{folder}/nowhere"], "no run in"),
        (["resume"], "nothing to resume"),
        (["report", "{folder}/nowhere"], "no such folder"),
        (["report", "{folder}"], "no runs"),
        (["compare", "{folder}", "{folder}"], "no runs"),
        (["pack", "{folder}", "--out", "{folder}/packed"], "holds no comparison"),
        (["pack", "{folder}"], "--out"),
        (["methods", "sdg"], "did you mean 'sgd'?"),
        (["data", "fetch", "mnits"], "did you mean 'mnist'?"),
        (["data", "fetch"], "name a data set"),
        (["data", "verify", "mnits"], "did you mean 'mnist'?"),
        (["data", "show", "digits", "--part", "tests"], "no part 'tests'"),
        (["data", "list", "--data", "{folder}/nowhere"], "is not a folder"),
        (["scenarios", "--boundaries", "maybe"], "maybe"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_usage_ends_with_2(bgd, arguments, message, tmp_path):
    (tmp_path / "broken.toml").write_text("title = ")
    start = 'title = "Mine"\n[rows.A]\nmethod = '
    (tmp_path / "no_data.toml").write_text(f'{start}"sgd"\n[setup.data]\nname = "./nowhere"\n')
    (tmp_path / "no_module.toml").write_text(f'{start}"nowhere:Method"\n')
    code, _, err = bgd(*(argument.format(folder=tmp_path) for argument in arguments))
    assert code == 2
    err = " ".join(err.replace("│", " ").split())
    assert any(one in err for one in message.split("|"))
    assert "Traceback" not in err
    assert not (tmp_path / "runs").exists()


def test_a_failed_run_is_reported_at_the_end_and_run_again(bgd, tmp_path):
    code, out, err = bgd("run", "digits", "-p", "smoke", *SMALL, "--set", "sgd.lr=1e30")
    assert code == 1
    assert "1 of 2 runs failed" in err
    assert "failure.txt" in err
    assert "Adam" in out  # the rest has finished
    code, _, err = bgd("resume", "--jobs", "1")
    assert code == 1
    assert "1 of 1 run failed" in err


def test_a_resumed_run_keeps_its_threads_and_its_network(bgd, tmp_path):
    assert bgd("run", "digits", "-p", "smoke", *SMALL, "--threads", "2", "--keep")[0] == 0
    for run in (tmp_path / "runs" / "digits-smoke").glob("*/"):
        (run / "result.json").unlink()  # as if it had been interrupted
    assert bgd("resume")[0] == 0
    again = [json.loads(file.read_text()) for file in tmp_path.rglob("environment.json")]
    assert [machine["threads"] for machine in again] == [2, 2]
    assert len(list(tmp_path.rglob("checkpoint-*.pt"))) == 2
    assert recorded_machine(tmp_path / "runs" / "digits-smoke" / "not-started").threads == 2


def test_runs_of_an_older_declaration_are_not_resumed(bgd, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('title = "Mine"\n[setup]\ntasks = {count = 2}\n[rows.SGD]\nmethod = "sgd"\nsettings = {lr = 0.1}\n')
    assert bgd("run", file, "-q")[0] == 0
    file.write_text(file.read_text().replace("0.1", "0.2"))
    assert bgd("run", file, "-q")[0] == 0
    for result in tmp_path.rglob("result.json"):
        result.unlink()
    assert bgd("resume")[0] == 0
    (done,) = tmp_path.rglob("result.json")
    assert json.loads((done.parent / "config.json").read_text())["settings"] == {"lr": 0.2}


OWN = 'title = "Mine"\n[setup]\ndata = {{name = "{data}"}}\ntasks = {{kind = "split", count = {count}}}\n'
OWN += '[rows.SGD]\nmethod = "sgd"\n'


@pytest.fixture
def own(tmp_path):
    """A comparison on own data, whose file is written again by each call."""
    images = np.random.default_rng(0).integers(0, 255, (40, 4, 4), dtype=np.uint8)
    for folder in ("data", "empty"):
        (tmp_path / folder).mkdir()
    for part in ("train", "test"):
        np.savez(tmp_path / "data" / f"{part}.npz", images=images, labels=np.arange(40) % 4)

    def own(data="data", count=2):
        (tmp_path / "mine.toml").write_text(OWN.format(data=tmp_path / data, count=count))
        return tmp_path / "mine.toml"

    return own


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "dta"}, "is not a folder"),
        ({"data": "empty"}, "found no .npz file"),
        ({"count": 3}, "4 classes of data do not make 3 equal groups"),
    ],
)
def test_wrong_data_leaves_the_comparison_unchanged(bgd, own, tmp_path, change, message):
    assert bgd("run", own(), "-q")[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()}
    code, _, err = bgd("run", own(**change), "-q")
    assert code == 2
    assert message in err
    assert {path: path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()} == before


def test_finished_runs_do_not_need_their_data(bgd, own, tmp_path):
    assert bgd("run", own(), "-q")[0] == 0
    (tmp_path / "data").rename(tmp_path / "gone")
    code, out, err = bgd("run", own())
    assert code == 0, err
    assert "1 run finished before" in out


def test_a_column_named_twice_is_run_once(bgd):
    code, out, err = bgd("run", "digits", "-p", "smoke", *SMALL, "--column", "new classes, no replay", "--json")
    assert code == 0, err
    assert len(json.loads(out)["runs"]) == 2


@pytest.mark.parametrize(
    ("override", "message"),
    [("bgd.lr=0.5", "no run of that row is selected"), ('stream={"beta": 2}', "stream.beta: has no effect")],
)
def test_overrides_without_effect_are_rejected(bgd, override, message, tmp_path):
    code, _, err = bgd("run", "digits", "-p", "smoke", *SMALL, "--set", override)
    assert code == 2
    assert message in err
    assert not (tmp_path / "runs").exists()


def test_outdated_runs_do_not_hide_unfinished_ones(bgd, own, tmp_path):
    assert bgd("run", "digits", "-p", "smoke", *SMALL, "-q")[0] == 0
    for result in tmp_path.rglob("result.json"):
        result.unlink()
    assert bgd("run", own(), "-q")[0] == 0
    (outdated,) = (tmp_path / "runs" / "mine-full").rglob("result.json")
    assert bgd("run", own(count=4), "-q")[0] == 0
    outdated.unlink()
    time.sleep(0.01)
    (outdated.parent / "metrics.jsonl").touch()  # the last thing written
    code, out, err = bgd("resume", "--json")
    assert code == 0, err
    assert {run["row"] for run in json.loads(out)["runs"]} == {"SGD", "Adam"}


def test_show_mentions_the_precision(bgd):
    override = ["--set", "net.precision=bfloat16"]
    assert "init torch, products in bfloat16" in " ".join(
        bgd("show", "permuted-mnist", "-p", "paper", *override)[1].split()
    )
    assert "init torch, products in" not in " ".join(bgd("show", "permuted-mnist", "-p", "paper")[1].split())


def test_show_describes_rotations_and_drifts(bgd, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'title = "Mine"\n[columns.turned]\ntasks = {kind = "rotate", degrees = [0, 30]}\n'
        '[columns.turning]\nscenario = "continuous task-agnostic"\nstream = {kind = "drifting", moments = 4}\n'
        '[rows.SGD]\nmethod = "sgd"\n'
    )
    _, out, _ = bgd("show", tmp_path / "mine.toml")
    assert "2 tasks (rotate)" in out
    assert "turning from 0 to 90 degrees, tested at 4 moments" in " ".join(out.split())


def test_an_unwritable_folder(bgd, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = bgd("run", "digits", "-p", "smoke", "--out", tmp_path / "file")
    assert code == 2
    assert "cannot write" in err
    assert "Traceback" not in err


def test_nothing_to_resume(bgd, tmp_path):
    code, _, err = bgd("resume")
    assert code == 2
    assert "nothing to resume" in err
    assert bgd("run", "digits", "-p", "smoke", *SMALL, "-q")[0] == 0
    code, _, err = bgd("resume", tmp_path / "runs" / "digits-smoke")
    assert code == 0
    assert "every run is finished" in err


def test_doctor(bgd, monkeypatch, tmp_path):
    code, out, _ = bgd("doctor")
    assert code == 0
    assert str(tmp_path / "runs") in out
    assert "no problems found" in out
    monkeypatch.setenv("BGD_DATA", str(tmp_path / "nowhere"))
    code, out, _ = bgd("doctor", "--json")
    assert code == 1
    assert "nowhere" in json.loads(out)["problems"][0]


def test_ctrl_c_saves_and_names_the_command_to_continue(tmp_path):
    """A real process, a real SIGINT, as a shell sends it: to the whole group."""
    command = [sys.executable, "-m", "bgd.cli", "run", "digits", "-p", "smoke", "--row", "BGD"]
    command += [
        "--column",
        "fading tasks",
        "--set",
        "stream.iterations=3000",
        "--seeds",
        "1-2",
        "--jobs",
        "2",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not any(
        '"loss"' in path.read_text() for path in tmp_path.rglob("metrics.jsonl")
    ):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "to continue: bgd resume" in err
    assert "Traceback" not in err
    assert list(tmp_path.rglob("checkpoint-*.pt"))
    assert not list(tmp_path.rglob("result.json"))
    waiting = list(tmp_path.rglob("config.json"))
    assert len(waiting) == 2  # also the run that had not started can be resumed


def test_the_same_computation_is_reused_and_reported(bgd, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\ntitle = "Mine"\n[rows.SGD]\nmethod = "sgd"\n[columns.accuracy]\n'
        "[presets.smoke]\nseeds = [1, 2]\n[presets.smoke.setup]\ndata = {train = 100, test = 50}\n"
        "net = {widths = [5]}\ntasks = {count = 2}\n"
    )
    text = (tmp_path / "mine.toml").read_text()
    (tmp_path / "yours.toml").write_text(text.replace("mine", "yours").replace("[1, 2]", "[1, 2, 3]"))
    first = ["run", tmp_path / "mine.toml", "-p", "smoke", "--executor", "serial"]
    second = ["run", tmp_path / "yours.toml", "-p", "smoke", "--executor", "serial"]
    assert bgd(*first, "-q")[0] == 0
    code, out, err = bgd(*second, "--json")
    assert (code, err) == (0, "")
    mine = tmp_path / "runs" / "mine-smoke"
    runs = {run["seed"]: (run["new"], run["reused_from"]) for run in json.loads(out)["runs"]}
    assert runs.pop(3) == (True, None)
    assert {new for new, _ in runs.values()} == {False}
    assert {str(mine / path.name) for path in mine.iterdir() if path.is_dir()} == {
        source for _, source in runs.values()
    }
    _, out, _ = bgd(*second, "--out", tmp_path / "alone")
    assert "reused" not in out
    for path in (tmp_path / "runs" / "yours-smoke").glob("*/result.json"):
        path.unlink()
    code, out, err = bgd(*second, "--seeds", "1,2")
    assert code == 0
    assert f"2 runs reused from {mine}" in out
    assert "finished before" not in out
    assert "[1/" not in err
    for path in (tmp_path / "runs" / "yours-smoke").glob("*/result.json"):
        path.unlink()
    code, out, err = bgd(*second, "--no-reuse", "--seeds", "1,2")
    assert code == 0
    assert "reused" not in out
    assert "[2/2]" in err


def test_the_closing_table_is_that_of_the_report(bgd, tmp_path):
    """With overrides, and what is missing."""
    code, ran, _ = bgd("run", "digits", "-p", "smoke", *SMALL, "--set", "sgd.lr=1e30")
    assert code == 1
    (folder,) = (tmp_path / "runs").iterdir()
    _, reported, _ = bgd("report", folder, "--format", "json")
    for text in ("with sgd.lr=1e30", "not complete: 1 of 2 runs missing, 1 failed"):
        assert text in ran
        assert text in reported


def test_wrong_data_is_reported_once_before_any_run(bgd, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\ntitle = "Mine"\n[rows.SGD]\nmethod = "sgd"\n[rows.Adam]\nmethod = "adam"\n'
        '[setup]\nscenario = "task"\n[setup.tasks]\nkind = "mix"\n'
        '[setup.data]\nmix = [{name = "digits", classes = [0, 10]}]\n'
    )
    code, out, err = bgd("run", tmp_path / "mine.toml")
    assert code == 2
    assert not out
    assert " ".join(err.split()).count("classes (0, 10) of digits: list at least one, each once, from 0 to 9") == 1
    assert not list(tmp_path.rglob("failure.txt"))


def test_a_network_too_large_for_the_images_is_reported_once_before_any_run(bgd, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(
        'title = "Too small"\n[setup]\ndata = { name = "digits" }\nnet = { name = "vgg16" }\n'
        '[rows.SGD]\nmethod = "sgd"\n[rows.Adam]\nmethod = "adam"\n'
    )
    code, out, error = bgd("run", own, "--jobs", 1, "--out", tmp_path / "runs")
    assert code == 2
    assert error.count("too small") == 1
    assert "FAILED" not in out + error
    assert not list(tmp_path.rglob("failure.txt"))


def edited_sgd(config):
    """As if somebody had changed the code of SGD."""
    return "edited" if config.method == "sgd" else code_digest(config)


def test_runs_by_other_code_are_reported_and_rerun_on_request(bgd, tmp_path, monkeypatch):
    small = ["run", "digits", "--preset", "smoke", *SMALL]
    bgd(*small)
    results = sorted(tmp_path.rglob("result.json"))
    (changed,) = (path for path in results if "sgd" in str(path.parent.name))
    before = changed.read_bytes()
    changed.write_bytes(before.replace(b'"average_accuracy":0.', b'"average_accuracy":0.0'))
    (changed.parent / "SHA256SUMS").unlink()  # or the change would be noticed
    _, out, _ = bgd(*small)
    assert "2 runs finished before" in out
    assert "other code" not in out
    monkeypatch.setattr("bgd.experiments.reuse.code_digest", edited_sgd)
    _, out, _ = bgd(*small)
    assert "1 run, at least in part, by other code of sgd than today's: --rerun runs them again" in out
    assert changed.read_bytes() != before
    code, _, err = bgd(*small, "--rerun")
    assert code == 0, err
    assert "[2/2]" in err
    assert changed.read_bytes() == before
    monkeypatch.setitem(SGD.__init__.__kwdefaults__, "momentum", 0.5)
    code, _, err = bgd(*small)
    assert (code, "the default of momentum has changed" in err) == (2, True)
    code, _, err = bgd(*small, "--rerun")
    assert code == 0, err


def test_a_run_by_other_code_is_not_reused(bgd, tmp_path, monkeypatch):
    small = ["run", "digits", "--preset", "smoke", *SMALL, "--set", "stream.epochs=1"]
    bgd("run", "digits", "--preset", "smoke", *SMALL)
    _, out, _ = bgd(*small)
    assert "2 runs reused" in out
    monkeypatch.setattr("bgd.experiments.reuse.code_digest", edited_sgd)
    _, out, _ = bgd(*small[:-1], "net.widths=[32,32]")
    assert "1 run reused" in out


def test_a_row_is_selected_by_label_or_method(bgd):
    rows = {}
    for name in ("BGD", "bgd"):
        _, out, _ = bgd("run", "split-mnist", "--preset", "smoke", "--column", "domain", "--row", name, "--json")
        rows[name] = {run["row"] for run in json.loads(out)["runs"]}
    assert rows["BGD"] == {"BGD"}
    assert rows["bgd"] == {"BGD", "BGD, std capped", "BGD, std_init of its script", "BGD, torch's initialisation"}


def test_impossible_runs_are_wrong_usage(bgd, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'title = "Mine"\n[setup]\nscenario = "continuous task-agnostic"\nstream = { kind = "continuous" }\n'
        '[rows.EWC]\nmethod = "ewc"\n'
    )
    code, _, err = bgd("run", mine)
    assert (code, "needs BOUNDARIES" in err) == (2, True)


def test_a_label_with_commas_is_one_row(bgd):
    rows = ["--row", "k = 2, CAPPED", "--row", "SGD"]
    _, out, _ = bgd("run", "mc-samples", "-p", "smoke", "--column", "SPLIT class + trick", *rows, "--json")
    assert {run["row"] for run in json.loads(out)["runs"]} == {"K = 2, capped", "SGD"}


def test_a_precision_is_a_setting(bgd, tmp_path):
    small = ["run", "permuted-mnist", "-p", "smoke", "--row", "SGD", "--column", "class", "-q"]
    assert bgd(*small, "--set", "net.precision=bfloat16")[0] == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name == "permuted-mnist-smoke--net.precision=bfloat16"
    code, out, _ = bgd("resume", folder, "--json")
    assert (code, json.loads(out)["runs"]) == (0, [])


def test_list_fits_80_columns_and_shows_times(bgd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = bgd("list")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    (line,) = (line for line in lines if line.startswith("digits "))
    record = next(one for one in json.loads(bgd("list", "--json")[1]) if one["name"] == "digits")
    times = [preset["expected_time"] for preset in record["presets"].values()]
    assert all(times)
    assert [part.strip() for part in line.removeprefix("digits").split("  ") if part.strip()] == times


def test_methods(bgd):
    code, out, _ = bgd("methods")
    assert code == 0
    assert {"online-ewc", "bgd", "offline"} <= {line.split()[0] for line in out.splitlines() if line}
    code, out, _ = bgd("methods", "online-ewc")
    assert code == 0
    assert "consolidate_every" in out
    assert ">>>" not in out
    record = json.loads(bgd("methods", "adam", "--json")[1])
    assert record["settings"] == {"lr": 0.001}
    assert record["needs"] == "nothing"
