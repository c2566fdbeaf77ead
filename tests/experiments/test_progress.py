"""The display of many running runs: the stage of each, and the time left."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from bgd.experiments.estimate import Estimate
from bgd.experiments.progress import Bars, Lines, fit_line
from bgd.runs.config import RunConfig
from bgd.runs.executors import Job, Outcome
from bgd.runs.progress import Progress
from bgd.runs.result import Machine, RunResult
from bgd.runs.run import run


def job(row: str, seed: int = 2019, column: str = "split, class") -> Job:
    config = RunConfig(method=row.lower(), row=row, column=column, seed=seed)
    return Job(config, Path(f"{row}-{column}-{seed}"))


def done(one: Job, seconds: float, iterations: int = 100) -> Outcome:
    measured = {"R": [[0.5]], "average_accuracy": 0.5, "by_inference": {"map": 0.5}, "metrics": {}, "evaluations": []}
    rest = {"task_names": ["a"], "iterations": iterations, "stages": [1], "curve": [], "stds": [], "warnings": []}
    return Outcome(one, RunResult(config=one.config, **measured, **rest, machine=Machine(seconds=seconds)))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


# --- the estimate


def test_a_waiting_run_is_estimated_by_its_own_method(clock):
    jobs = [job("SGD"), job("BGD"), job("SGD", 2020), job("BGD", 2020)]
    estimate = Estimate(jobs, clock)
    assert estimate.left_of_all() is None
    for one, seconds in zip(jobs[:2], (10.0, 100.0), strict=True):
        estimate.update(one, Progress(0, 100))
        clock.now += seconds
        estimate.end(done(one, seconds))
    assert estimate.left(jobs[2]) == pytest.approx(10)
    assert estimate.left(jobs[3]) == pytest.approx(100)
    assert estimate.left_of_all() == pytest.approx(110)


def test_a_longer_column_takes_longer(clock):
    jobs = [job("SGD"), job("SGD", column="long"), job("BGD"), job("BGD", column="long")]
    estimate = Estimate(jobs, clock)
    estimate.end(done(jobs[0], 10, iterations=100))
    estimate.end(done(jobs[1], 50, iterations=500))
    estimate.end(done(jobs[2], 100, iterations=100))
    assert estimate.left_of_all() == pytest.approx(500)


def test_runs_at_a_time_share_the_work_but_the_last_takes_its_own_time(clock):
    jobs = [job("SGD", seed) for seed in range(4)]
    estimate = Estimate(jobs, clock)
    for one in jobs[:2]:
        estimate.update(one, Progress(0, 100))
    clock.now = 10
    for one in jobs[:2]:
        estimate.update(one, Progress(50, 100))
    assert estimate.left_of_all() == pytest.approx((10 + 10 + 20 + 20) / 2)
    for one in jobs[:3]:
        estimate.end(done(one, 20))
    assert estimate.left_of_all() == pytest.approx(20)
    estimate.end(Outcome(jobs[3], error="failed"))
    assert estimate.left_of_all() == 0


def test_a_resumed_run_is_estimated_by_the_speed_of_this_session(clock):
    (one,) = jobs = [job("BGD")]
    estimate = Estimate(jobs, clock)
    estimate.update(one, Progress(900, 1000))
    clock.now = 5
    estimate.update(one, Progress(950, 1000))
    assert estimate.left(one) == pytest.approx(5)


# --- the display


def frame(bars: Bars, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(bars.bars.get_renderable())
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 129, 130, 200])
def test_one_line_for_each_running_run_at_any_width(width):
    jobs = [job("BGD"), job("Online EWC", column="continuous task-agnostic, permuted"), job("SGD")]
    bars = Bars(Console(file=io.StringIO(), force_terminal=True, width=width), jobs)
    bars.all = bars.bars.add_task("all runs", total=3, so_far="0/3", left="")
    bars.estimate.clock = Clock()
    for done_so_far in (0, 51_234):
        bars.update(jobs[0], Progress(done_so_far, 93_800, 3, 5, "digits 4, 5"))
        bars.update(jobs[1], Progress(done_so_far, 93_800, 10, 10, "permutation 9", "evaluating"))
        bars.estimate.clock.now += 5000
    lines = frame(bars, width)
    assert len(lines) == 3
    assert all(len(line) <= width for line in lines)
    assert ("task 3/5 (digits 4, 5)" in lines[1]) == (width >= 100)
    assert "task 3/5" in lines[1]
    assert "evaluating" in lines[2]
    assert "seed 2019" in lines[2] or width < 80
    assert "51,234/93,800" in lines[1]
    assert all("h" in line and line.rstrip().endswith("left") for line in lines)
    bars.end(done(jobs[0], 1.0))
    assert len(frame(bars, width)) == 2


def test_names_are_not_read_as_markup():
    odd = job("[bold]mine[/bold]")
    bars = Bars(Console(file=io.StringIO(), force_terminal=True, width=200), [odd])
    bars.all = bars.bars.add_task("all runs", total=1, so_far="0/1", left="")
    bars.update(odd, Progress(1, 2, 1, 2, "[red]a"))
    assert "[bold]mine[/bold], split, class, seed 2019  task 1/2 ([red]a)" in frame(bars, 200)[1]


@pytest.mark.parametrize("width", range(10, 80))
def test_a_line_fits_where_it_can(width):
    line = fit_line("Online EWC, continuous permuted, seed 2019", Progress(1, 2, 3, 5, "permutation 2"), width)
    assert len(line) <= max(width, len("task 3/5") + 10)
    assert "task 3/5" in line


def test_lines_show_task_iteration_and_time_left(clock):
    jobs = [job("BGD"), job("BGD", 2020)]
    console = Console(file=io.StringIO(), width=80)
    lines = Lines(console, jobs, every=0)
    lines.estimate.clock = clock
    lines.update(jobs[0], Progress(0, 1876, activity="starting"))
    clock.now = 120
    lines.update(jobs[0], Progress(938, 1876, 3, 5, "digits 4, 5"))
    printed = console.file.getvalue().splitlines()
    assert printed[0].strip() == "BGD, split, class, seed 2019: starting, iteration 0 of 1,876"
    assert printed[1].strip() == (
        "BGD, split, class, seed 2019: task 3 of 5 (digits 4, 5), iteration 938 of 1,876, about 2 min left, "
        "of all runs about 6 min left"
    )


# --- progress reports of runs


def progress_reports(tmp_path, monkeypatch, **choice) -> list[Progress]:
    monkeypatch.setattr(sys.modules["bgd.runs.progress"], "TICK", 0.0)
    reports: list[Progress] = []
    setup = {"data": {"train": 60, "test": 20}, "net": {"widths": [5]}, "tasks": {"count": 3}}
    setup |= choice.pop("setup", {})
    run(RunConfig(setup=setup, **choice), tmp_path, report=reports.append)
    return reports


def test_a_run_reports_its_task_and_slow_stages(tmp_path, monkeypatch):
    reports = progress_reports(tmp_path, monkeypatch, method="ewc", setup={"stream": {"epochs": 4, "batch_size": 20}})
    assert reports[0] == Progress(0, 36, 1, 3, "unpermuted", "starting")
    training = [(report.iteration, report.task, report.name) for report in reports if not report.activity]
    assert (11, 1, "unpermuted") in training
    assert (12, 2, "permutation 1") in training
    assert [report.task for report in reports] == sorted(report.task for report in reports)
    # when a task has ended, its learner still consolidates it and is tested
    assert {(p.iteration, p.task) for p in reports if p.activity == "consolidating"} == {(12, 1), (24, 2), (36, 3)}
    assert {(p.iteration, p.task) for p in reports if p.activity == "evaluating"} == {(0, 1), (12, 1), (24, 2), (36, 3)}


def test_joint_training_reports_no_task(tmp_path, monkeypatch):
    assert {report.task for report in progress_reports(tmp_path, monkeypatch, method="offline")} == {0}
