"""A comparison from Python: the same runs, files and stops as by the command."""

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from bgd.api import ExperimentResult, run_experiment
from bgd.cli import main
from bgd.errors import BGDError, MissingExtraError, SettingError
from bgd.experiments import Experiment, ExperimentError, Row
from bgd.experiments.storage import read_declaration
from bgd.plugins import import_paths
from bgd.runs import Interrupted, RunError

SETUP = {"data": {"train": 100, "test": 50}, "net": {"widths": [5]}, "tasks": {"count": 2}}
CHOICE = {"rows": ["SGD", "ADAM"], "columns": ["New classes, no replay"], "progress": False}


def made(method: object = "sgd", **fields: object) -> Experiment:
    return Experiment.model_validate(
        {"name": "made", "title": "Made", "setup": SETUP, "rows": {"A": Row(method=method)}} | fields
    )


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A package with a method of its own, in a folder that no process searches."""
    folder = tmp_path / "project" / "ownpackage"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "tether.py").write_text(
        "from bgd.methods import SGD\n\n\nclass Tether(SGD):\n    '''SGD under another name.'''\n"
    )
    yield folder.parent
    for name in [name for name in sys.modules if name.partition(".")[0] == "ownpackage"]:
        monkeypatch.delitem(sys.modules, name)


def test_a_comparison(tmp_path):
    result = run_experiment("digits", "smoke", out=tmp_path, **CHOICE)
    assert isinstance(result, ExperimentResult)
    assert result.folder == tmp_path / "digits-smoke"
    assert result.failed == ()
    frame = result.dataframe
    assert list(frame["row"]) == ["SGD", "Adam"]
    assert frame["accuracy"].between(0, 100).all()
    assert result.tables[0].headers[0] == "method"
    html = result._repr_html_()
    assert html.count("<table>") == len(result.tables)
    assert "<td>Adam</td>" in html or "<b>Adam</b>" in html
    assert "SGD" in str(result)
    page = result.report(tmp_path / "report")
    assert page == tmp_path / "report" / "index.html"
    assert "SGD" in page.read_text()


def test_the_files_are_those_of_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("BGD_RUNS", str(tmp_path / "python"))
    run_experiment("digits", "smoke", seeds=[7], overrides={"SGD.lr": 0.5}, **CHOICE)
    shell = ["run", "digits", "-p", "smoke", "--row", "SGD", "--row", "adam", "--column", "new classes, no replay"]
    shell += ["--seeds", "7", "--set", "SGD.lr=0.5", "--jobs", "1", "-q", "--out", str(tmp_path / "shell")]
    with pytest.raises(SystemExit, match="0"):
        main(shell)
    results = [
        {path.relative_to(tmp_path / way): path.read_bytes() for path in (tmp_path / way).rglob("result.json")}
        for way in ("python", "shell")
    ]
    assert len(results[0]) == 2
    assert results[0] == results[1]


def test_two_jobs_give_the_same_bytes_as_one(tmp_path):
    for jobs in (1, 2):
        run_experiment("digits", "smoke", out=tmp_path / str(jobs), jobs=jobs, **CHOICE)
    one, two = ({path.parent.name: path.read_bytes() for path in (tmp_path / n).rglob("result.json")} for n in "12")
    assert one == two
    assert len(one) == 2


def test_finished_runs_are_not_run_again_unless_requested(tmp_path):
    run_experiment("digits", "smoke", out=tmp_path, **CHOICE)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("result.json")}
    run_experiment("digits", "smoke", out=tmp_path, **CHOICE)
    assert times == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("result.json")}
    run_experiment("digits", "smoke", out=tmp_path, rerun=True, **CHOICE)
    assert not set(times.values()) & {path.stat().st_mtime_ns for path in tmp_path.rglob("result.json")}


def test_an_interruption_saves_and_the_same_call_continues(tmp_path):
    long = {"out": tmp_path, "columns": ["fading tasks"], "rows": ["SGD"], "progress": False}
    long["overrides"] = {"stream.iterations": 3000}

    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not any(
            '"loss"' in path.read_text() for path in tmp_path.rglob("metrics.jsonl")
        ):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(Interrupted, match=r"everything is saved\. 1 run left; to continue: call run_experiment again"):
        run_experiment("digits", "smoke", **long)
    assert list(tmp_path.rglob("checkpoint-*.pt"))
    assert not list(tmp_path.rglob("result.json"))
    result = run_experiment("digits", "smoke", **long)
    assert len(result.dataframe) == 1
    (machine,) = tmp_path.rglob("environment.json")
    assert json.loads(machine.read_text())["sessions"] == 2
    whole = run_experiment("digits", "smoke", **(long | {"out": tmp_path / "whole"}))
    one, two = (next(folder.rglob("result.json")).read_bytes() for folder in (result.folder, whole.folder))
    assert one == two


def test_failed_runs_are_returned(tmp_path):
    result = run_experiment("digits", "smoke", out=tmp_path, overrides={"sgd.lr": 1e30}, **CHOICE)
    (failed,) = result.failed
    assert failed.job.config.row == "SGD"
    assert failed.traceback.is_file()
    assert list(result.dataframe["row"]) == ["Adam"]
    assert "1 run failed" in result._repr_html_()


def test_an_experiment_made_in_python(tmp_path):
    result = run_experiment(made(seeds=(1, 2)), out=tmp_path, progress=False)
    assert list(result.dataframe["seed"]) == [1, 2]
    assert read_declaration(result.folder).experiment == made(seeds=(1, 2))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_class_from_a_module(tmp_path, own_module, jobs):
    pytest.importorskip("bgd.methods.registry")
    with import_paths([str(own_module)]):
        from ownpackage.tether import Tether  # type: ignore[import-not-found]

        experiment = made(Tether, seeds=(1, 2), import_paths=(str(own_module),))
        assert experiment.rows["A"].method == "ownpackage.tether:Tether"
    result = run_experiment(experiment, out=tmp_path / "runs", jobs=jobs, progress=False)
    assert result.failed == ()
    plain = run_experiment(made(seeds=(1, 2)), out=tmp_path / "plain", progress=False)
    assert list(result.dataframe["accuracy"]) == list(plain.dataframe["accuracy"])


def test_a_module_beside_a_toml_file(tmp_path, own_module):
    pytest.importorskip("bgd.methods.registry")
    file = own_module / "mine.toml"
    file.write_text(
        'title = "Mine"\nseeds = [1, 2]\n[rows.T]\nmethod = "ownpackage.tether:Tether"\n[setup]\n'
        "data = { train = 100, test = 50 }\nnet = { widths = [5] }\ntasks = { count = 2 }\n"
    )
    result = run_experiment(file, out=tmp_path / "runs", jobs=2, progress=False)
    assert (len(result.dataframe), result.failed) == (2, ())


def test_a_class_of_main_is_refused_for_other_processes(tmp_path, capsys):
    """As in a notebook: it works in this process, and the error names the way out for others."""
    pytest.importorskip("bgd.methods.registry")
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            from bgd.api import run_experiment
            from bgd.experiments import Experiment
            from bgd.runs import RunError
            from bgd.methods import SGD

            class Mine(SGD):
                pass

            if __name__ == "__main__":
                rows = {{"A": {{"method": Mine}}}}
                made = Experiment(name="made", title="Made", setup={SETUP!r}, rows=rows, seeds=(1, 2))
                for executor in ({{"jobs": 2}}, {{"executor": "ray"}}):
                    try:
                        run_experiment(made, out={str(tmp_path / "runs")!r}, progress=False, **executor)
                    except RunError as error:
                        print(error)
                print(len(run_experiment(made, out={str(tmp_path / "runs")!r}, progress=False).dataframe))
            """
        )
    )
    runpy.run_path(str(script), run_name="__main__")
    out = capsys.readouterr().out.splitlines()
    message = "'__main__:Mine' is defined in the running script or notebook, where another process cannot import it: "
    assert out == [f"{message}move it to a module, or run in this process"] * 2 + ["2"]


def test_a_script_without_a_main_guard_can_use_several_processes(tmp_path):
    script = tmp_path / "script.py"
    out = str(tmp_path / "runs")
    script.write_text(
        "import bgd\n"
        "found = bgd.run_experiment('digits', 'smoke', rows=['SGD', 'Adam'], columns=['new classes, no replay'],\n"
        f"                            out={out!r}, jobs=2, progress=False)\n"
        "print(len(found.dataframe), len(found.failed))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["2", "0"], done.stderr


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"experiment": "digts"}, ExperimentError, "did you mean 'digits'?"),
        ({"experiment": Path("no.toml")}, ExperimentError, "cannot be read"),
        ({"preset": "smal"}, ExperimentError, "no preset 'smal'"),
        ({"rows": ["agd"]}, ExperimentError, "no row 'agd'"),
        ({"rows": "BGD"}, ExperimentError, "rows='BGD': give a list of labels"),
        ({"seeds": [-1]}, ExperimentError, "seeds=[-1]: give different whole numbers from 0"),
        ({"seeds": [1, 1]}, ExperimentError, "seeds=[1, 1]: give different whole numbers from 0"),
        ({"overrides": {"stream.epoch": 1}}, ExperimentError, "did you mean 'epochs'?"),
        ({"overrides": {"bgd.std_int": 1}}, RunError, "did you mean 'std_init'?"),
        ({"executor": "threads"}, SettingError, "executor='threads': choose one of auto, serial"),
        ({"jobs": -1}, SettingError, "jobs=-1: must be a whole number from 0"),
        ({"executor": "serial", "ray_address": "a:1"}, SettingError, "needs the executor ray"),
    ],
)
def test_invalid_arguments_are_rejected(tmp_path, arguments, error, message):
    with pytest.raises(error) as caught:
        run_experiment(**({"experiment": "digits", "preset": "smoke", "out": tmp_path / "runs"} | arguments))
    assert message in str(caught.value)
    assert isinstance(caught.value, BGDError)
    assert not (tmp_path / "runs").exists()


def test_results_of_other_code_are_warned_of(tmp_path, monkeypatch):
    run_experiment(made(), out=tmp_path, progress=False)
    monkeypatch.setattr("bgd.experiments.reuse.code_digest", lambda config: "edited")
    with pytest.warns(UserWarning, match="1 run, at least in part, by other code of sgd than today's: rerun=True"):
        run_experiment(made(), out=tmp_path, progress=False)


def test_a_run_that_other_code_continued_is_warned_of(tmp_path):
    result = run_experiment(made(), out=tmp_path, progress=False, keep=True)
    [file] = result.folder.rglob("result.json")
    environment = file.with_name("environment.json")
    environment.write_text(re.sub(r'"code":( ?)"', r'"code":\1"0', environment.read_text()))
    file.unlink()  # as if interrupted at the end: the run continues from its checkpoint
    with pytest.warns(UserWarning, match="1 run, at least in part, by other code of sgd"):
        run_experiment(made(), out=tmp_path, progress=False, keep=True)


def test_a_missing_pandas_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"bgd\[experiments\]"):
        ExperimentResult(tmp_path).dataframe  # noqa: B018
