"""One run: train, measure, save; and go on, bit for bit, after whatever stopped it.

A stream is a pure function of (seed, iteration) and a learner's state dict is complete, so a checkpoint needs little
else. What was measured is in ``metrics.jsonl`` alone; the result is a pure function of it.
"""

from __future__ import annotations

import math
import time
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from bgd.data import DataError
from bgd.methods import code_of, settings_of
from bgd.optim import CollapseWarning
from bgd.runs import metrics
from bgd.runs.build import build_learner, build_stream, check, names_of, note_on, own_data
from bgd.runs.config import RunConfig
from bgd.runs.environment import describe, torch_threads
from bgd.runs.errors import RunError
from bgd.runs.evaluate import histogram, inferences, score, stds
from bgd.runs.folder import RunFolder, finished, read_machine, read_result, write_json
from bgd.runs.randomness import generator_states, own_randomness, restore_generators
from bgd.runs.result import CurvePoint, Evaluation, Fit, Machine, RunResult, StdHistogram
from bgd.runs.stop import Interrupted, StopRequest, stop_requests
from bgd.scenarios import Batch, Joint

TICK = 0.2  # seconds between looks at the clock's business: progress and checkpoints
THEN = ", then "  # between the versions of a run's sessions
PATIENCE = 50  # a checkpoint may cost one part in so many of the time


class Progress(NamedTuple):
    """How far a run has come.

    Attributes:
        done: iterations, from the very start, whatever the number of sessions.
        of: iterations of the whole run.
        task: the one at hand, from 1; in a stream without boundaries the one that prevails. 0 where all tasks are
            learnt at once.
        tasks: how many there are.
        name: of the task.
        doing: what takes the time if it is not learning, such as 'evaluating'.

    >>> Progress(812, 1876, 3, 5, "digits 4, 5").done
    812
    """

    done: int
    of: int
    task: int = 0
    tasks: int = 0
    name: str = ""
    doing: str = ""


Report = Callable[[Progress], None]
"""Told of progress a few times a second."""


@dataclass(frozen=True)
class Options:
    """How to run, which is no part of what is run.

    Args:
        threads: of torch. Results are the same bits for the same number; one by default, so that they are the same
            in this process, in many, and on a cluster.
        checkpoint_seconds: at most one checkpoint in this time (longer where saving is slow); 0 for every iteration.
        keep: keep the last checkpoint, with the trained network, when the run is done.
        patient: ignore a second wish to stop; for worker processes.
    """

    threads: int = 1
    checkpoint_seconds: float = 30.0
    keep: bool = False
    patient: bool = False


def run(
    config: RunConfig, folder: str | Path, options: Options | None = None, report: Report | None = None
) -> RunResult:
    """Run to the end, from the last good checkpoint in ``folder`` if there is one; a finished run is only read.

    Args:
        config: what to run.
        folder: of this run alone; made if need be.
        options: threads and checkpoints.
        report: told of progress a few times a second.

    Raises:
        Interrupted: SIGINT or SIGTERM; the state is saved.
        RunError: for a configuration that cannot run, a folder in use, a full disk.

    >>> import tempfile
    >>> config = RunConfig(method="sgd", setup={"tasks": {"count": 2}, "net": {"widths": [10]}})
    >>> result = run(config, tempfile.mkdtemp())
    >>> len(result.R), result.iterations, result.evaluations[0].iteration
    (2, 24, 0)
    """
    check(config)
    options = options or Options()
    files = RunFolder(Path(folder))
    with files.opened(config):
        check_unchanged(config, files.path)
        if finished(files.path):
            return read_result(files.path)
        randomness = own_randomness(config.seed, config.device)
        with torch_threads(options.threads), randomness, stop_requests(options.patient) as wish:
            return _Session(config, files, options, wish, report or (lambda _: None)).complete()


def check_unchanged(config: RunConfig, folder: Path) -> None:
    """Refuse to go on with, or to take the result of, a run that had other defaults or other arrays of the user's own.

    Raises:
        RunError: names what has changed and the way out.
    """
    machine = read_machine(folder)
    if machine is None:
        return
    way_out = f"since {folder} was made: remove that folder to do the run again, or keep both with another --out"
    now = _plain(settings_of(config.method) | config.settings)
    if changed := [key for key, value in machine.settings.items() if now.get(key) != value]:
        raise RunError(f"{config.title}: the default of {', '.join(changed)} has changed {way_out}")
    before = machine.versions.get("data")
    if before is None:
        return
    try:
        same = own_data(config.setup.data) == before
    except DataError:
        return  # what a finished run learnt from need not be there any more; one that goes on will say so
    if not same:
        raise RunError(f"{config.title}: {', '.join(names_of(config.setup.data))} has changed {way_out}")


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """As they are read again from a file."""
    return Machine.model_validate_json(Machine(settings=settings).model_dump_json()).settings


class _Session:
    """A run from its start or last checkpoint to its end."""

    def __init__(
        self, config: RunConfig, files: RunFolder, options: Options, wish: StopRequest, report: Report
    ) -> None:
        self.config, self.files, self.options, self.wish, self.report = config, files, options, wish, report
        self.stream = build_stream(config)
        self.data = own_data(config.setup.data)
        self.learner = build_learner(config, self.stream)
        self.names = list(self.stream.tasks.names)
        self.length = len(self.stream)
        self.before: Machine | None = None
        self.iteration = 0
        self.loss_sum, self.loss_count = 0.0, 0
        self.seconds, self.train_seconds, self.work_seconds, self.sessions = 0.0, 0.0, 0.0, 1
        # what else the machine does should not count; with a GPU the processor only waits
        self.work = time.process_time if config.device == "cpu" else time.perf_counter
        self.save_cost = 0.0
        self.told = 0.0
        points = min(config.setup.test.curve, self.length)
        self.curve = frozenset(metrics.evaluation_schedule(self.length, points))
        evaluations = min(config.setup.test.evaluations, self.length)
        self.evaluations = frozenset(metrics.evaluation_schedule(self.length, evaluations) if evaluations else ())
        histograms = min(config.setup.test.stds, self.length)
        self.histograms = frozenset(metrics.evaluation_schedule(self.length, histograms) if histograms else ())
        moments = self.curve | self.evaluations | self.histograms
        self.events = sorted(moments | set(self.stream.stages) | {self.length})

    def complete(self) -> RunResult:
        (self.files.path / "failure.txt").unlink(missing_ok=True)  # of an attempt before this one
        self.resume()
        self.tell("starting")
        self.started = self.saved = time.perf_counter()
        self.began_work = self.work()
        write_json(self.files.path / "environment.json", self.machine())
        with self.noting_collapse():
            if self.iteration == 0:
                self.measure()
            for event in self.events[bisect_left(self.events, self.iteration + 1) :]:
                self.train_until(event)
                self.measure()
                self.look_up()
        result = summarise(self.config, self.names, self.stream.stages, self.files.metrics.records)
        if self.options.keep:
            self.save()
        machine = self.machine().model_copy(update={"finished": datetime.now(UTC).isoformat(timespec="seconds")})
        self.files.finish(result, machine, self.options.keep)
        return result.model_copy(update={"machine": machine})

    # --- training

    def train_until(self, event: int) -> None:
        """Learn from the batches up to an event, and close the task that ends there, if the learner is told so."""
        batch_of, observe, device = self.stream.batch, self.learner.observe, self.config.device
        clock, wish, begun = time.perf_counter, self.wish, self.work()
        tick = clock() + TICK
        for i in range(self.iteration, event):
            x, y, task = batch_of(i)
            if device != "cpu":
                x, y = x.to(device), y.to(device)
            self.loss_sum += observe(x, y, task)
            self.iteration = i + 1
            self.loss_count += 1
            # at an event the state is whole only once the event is over
            if (wish.stop or clock() >= tick or not self.options.checkpoint_seconds) and i + 1 < event:
                self.train_seconds += self.work() - begun
                self.look_up()
                begun = self.work()
                tick = clock() + TICK
        if self.stream.reveals_boundary_at(event - 1):
            ended = self.stream.stages.index(event)
            self.learner.end_task(self.once_more(ended))
        self.train_seconds += self.work() - begun

    def once_more(self, task: int) -> Iterator[Batch]:
        """A task's training samples, for a learner that looks back when it has ended."""
        device = self.config.device
        for x, y, told in self.stream.train_batches(task, self.config.setup.stream.batch_size):
            self.tell_at_times("consolidating")
            yield Batch(x.to(device), y.to(device), told)

    # --- measuring

    def measure(self) -> None:
        """Write down what is due at this iteration: the loss, accuracies, stds."""
        i, add = self.iteration, self.files.metrics.add
        if i in self.curve:
            add("loss", iteration=i, loss=self.loss_sum / self.loss_count)
            self.loss_sum, self.loss_count = 0.0, 0
        stages = [k for k, stage in enumerate(self.stream.stages) if stage == i]
        if stages or i in self.evaluations or i in (0, self.length):
            rows: list[int | None] = [*stages] or [None]
            seen = self.evaluate()
            for row in rows:
                add("evaluation", iteration=i, stage=row, **seen)
            if self.config.setup.test.train:
                add("fit", iteration=i, **self.fit())
        if (stages or i == 0 or i in self.histograms) and (values := stds(self.learner)) is not None:
            add("stds", iteration=i, after=self._after(stages), **histogram(values))

    def _after(self, stages: list[int]) -> str:
        if not stages:
            return f"iteration {self.iteration:,}" if self.iteration else "start"
        return self.names[stages[-1]] if len(self.stream.stages) == len(self.names) else "all tasks"

    def fit(self) -> dict[str, Any]:
        """The first training images of all tasks, by the run's own inference."""
        how = self.config.setup.test
        own = inferences(self.learner, (how.inference,))
        looks = [
            score(self.learner, self.training_images(task), own, how.samples, self.config.device)
            for task in range(len(self.names))
        ]
        return {"accuracy": [accuracy[own[-1]] for accuracy, _ in looks], "loss": [loss for _, loss in looks]}

    def training_images(self, task: int) -> Iterator[Batch]:
        """Told what a test is told, and not augmented."""
        left = self.config.setup.test.train
        told = task if self.stream.scenario.task_in_testing else None
        for x, y, _ in self.stream.train_batches(task, min(left, 2048)):
            yield Batch(x[:left], y[:left], told)
            left -= len(x)
            if left <= 0:
                return

    def evaluate(self) -> dict[str, Any]:
        """All tasks, by MAP and the run's own inference; at the end by every way of inference."""
        how = self.config.setup.test
        hows = inferences(self.learner, ("map", "mc", "vote", "mean_softmax") if self._at_end() else (how.inference,))
        by: dict[str, list[float]] = {one: [] for one in hows}
        losses = []
        for task in range(len(self.names)):
            self.tell_at_times("evaluating")
            batches = self.stream.test_batches(task)
            accuracy, loss = score(self.learner, batches, hows, how.samples, self.config.device)
            for one in hows:
                by[one].append(accuracy[one])
            losses.append(loss)
        own = how.inference if how.inference in by else "map"
        return {"seen": self._seen(), "accuracy": by[own], "loss": losses, "by_inference": by}

    def _at_end(self) -> bool:
        return self.iteration == self.length

    def _seen(self) -> int:
        if self.iteration == 0:
            return 0
        if isinstance(self.stream, Joint):
            return len(self.names)
        return min(len(self.names), bisect_left(self.stream.stages, self.iteration) + 1)

    @contextmanager
    def noting_collapse(self) -> Iterator[None]:
        """A collapsed posterior is part of the result: a table must not show it as just a bad number."""

        def note(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, CollapseWarning):
                show(message, category, filename, lineno, file, line)
            elif not any(record["kind"] == "warning" for record in self.files.metrics.records):
                # the optimizer's watch forgets on resume that it has warned: once is enough
                self.files.metrics.add("warning", iteration=self.iteration, text=str(message))

        with warnings.catch_warnings():
            show = warnings.showwarning
            warnings.simplefilter("always", CollapseWarning)
            warnings.showwarning = note
            yield

    # --- telling

    def tell(self, doing: str = "") -> None:
        """Say how far we are."""
        self.told = time.perf_counter()
        self.report(self.place(doing))

    def tell_at_times(self, doing: str) -> None:
        """The same, from within what may take long."""
        if time.perf_counter() - self.told >= TICK:
            self.tell(doing)

    def place(self, doing: str = "") -> Progress:
        """How far we are: what follows an iteration belongs to the next task, unless it looks back."""
        stages, tasks = self.stream.stages, len(self.names)
        if len(stages) != tasks:
            return Progress(self.iteration, self.length, doing=doing)
        task = min((bisect_left if doing else bisect_right)(stages, self.iteration), tasks - 1)
        return Progress(self.iteration, self.length, task + 1, tasks, self.names[task], doing)

    # --- saving

    def look_up(self) -> None:
        """Between two iterations: say how far we are, save if it is time, stop if someone asked to."""
        self.tell()
        if self.wish.stop and not self._at_end():
            self.save()
            raise Interrupted(
                f"interrupted at iteration {self.iteration} of {self.length}, all saved; go on with: "
                f"bgd resume {self.files.path}"
            )
        wait = max(self.options.checkpoint_seconds, PATIENCE * self.save_cost) if self.options.checkpoint_seconds else 0
        if time.perf_counter() - self.saved >= wait and not self._at_end():
            self.save()

    def save(self) -> None:
        """Write a checkpoint."""
        begun = time.perf_counter()
        machine = self.machine()
        state = {
            "iteration": self.iteration,
            "learner": self.learner.state_dict(),
            "generators": generator_states(self.config.device),
            "loss": [self.loss_sum, self.loss_count],
            "seconds": [machine.seconds, machine.train_seconds, machine.work_seconds],
            "sessions": self.sessions,
        }
        self.files.save(self.iteration, state)
        self.saved = time.perf_counter()
        self.save_cost = self.saved - begun

    def resume(self) -> None:
        """Go back to the last good checkpoint, or to the start."""
        state = self.files.load()
        for name in self.files.damaged:
            begin = f"goes on from iteration {state['iteration']}" if state else "begins anew"
            warnings.warn(f"{self.files.path / name} is damaged: this run {begin}", RuntimeWarning, stacklevel=2)
        self.files.metrics.cut(state["metrics"] if state else None)
        if state is None:
            return
        self.learner.load_state_dict(state["learner"])
        if "generators" in state:  # a checkpoint of an older version has none, nor had it dropout
            restore_generators(state["generators"], self.config.device)
        self.iteration = state["iteration"]
        self.loss_sum, self.loss_count = state["loss"]
        self.seconds, self.train_seconds, *work = state["seconds"]
        self.work_seconds = work[0] if work else self.seconds  # nor did it measure work apart
        self.sessions = state["sessions"] + 1
        self.before = read_machine(self.files.path)

    def machine(self) -> Any:
        """This machine, with the time spent so far; where a run was resumed elsewhere, what differs is named."""
        here = describe(self.options.threads, self.data, code_of(self.config.method))
        versions = _versions(self.before, here) if self.before else here.versions
        return here.model_copy(
            update={
                "versions": versions,
                "keep": self.options.keep,
                "seconds": self.seconds + time.perf_counter() - self.started,
                "train_seconds": self.train_seconds,
                "work_seconds": self.work_seconds + self.work() - self.began_work,
                "sessions": self.sessions,
                "settings": settings_of(self.config.method) | self.config.settings,
            }
        )


def _versions(before: Machine, here: Machine) -> dict[str, str]:
    """Of all sessions of a run: bits depend on them, and those of a mixed run are like no other's."""
    versions = here.versions | {"threads": str(here.threads)}
    then = {"threads": str(before.threads)} | before.versions
    joined = {
        key: then[key] if then.get(key, now).split(THEN)[-1] == now else f"{then[key]}{THEN}{now}"
        for key, now in versions.items()
    }
    return {key: value for key, value in joined.items() if key != "threads" or THEN in value}


def summarise(config: RunConfig, names: list[str], stages: tuple[int, ...], records: list[dict[str, Any]]) -> RunResult:
    """The result, from what was measured and nothing else."""
    kinds: dict[str, list[dict[str, Any]]] = {"loss": [], "evaluation": [], "fit": [], "stds": [], "warning": []}
    for record in records:
        kinds[record["kind"]].append({key: value for key, value in record.items() if key != "kind"})
    evaluations = [Evaluation(**record) for record in kinds["evaluation"]]
    last = evaluations[-1]
    R = [e.accuracy for e in evaluations if e.stage is not None]
    return RunResult(
        config=config,
        task_names=names,
        iterations=last.iteration,
        stages=list(stages),
        R=R,
        average_accuracy=metrics.average_accuracy(R),
        by_inference={how: math.fsum(each) / len(each) for how, each in last.by_inference.items()},
        metrics=_derived(config, R, evaluations),
        evaluations=evaluations,
        fits=[Fit(**record) for record in kinds["fit"]],
        curve=[CurvePoint(**record) for record in kinds["loss"]],
        stds=[StdHistogram(**record) for record in kinds["stds"]],
        warnings=[record["text"] for record in kinds["warning"]],
        data_note=note_on(config.setup.data),
    )


def _derived(config: RunConfig, R: list[list[float]], evaluations: list[Evaluation]) -> dict[str, float]:
    """The measures that are defined for this run: transfer needs a stage for each of several tasks."""
    derived = {}
    if len(R) == len(R[0]) > 1:
        derived["forgetting"] = metrics.forgetting(R)
        derived["backward_transfer"] = metrics.backward_transfer(R)
        derived["forward_transfer"] = metrics.forward_transfer(R, evaluations[0].accuracy)
    every = config.setup.test.evaluations
    length = evaluations[-1].iteration
    times = metrics.evaluation_schedule(length, min(every, length)) if every else [e.iteration for e in evaluations[1:]]
    by_time = {e.iteration: e for e in evaluations if e.iteration}
    chosen = [by_time[t] for t in dict.fromkeys(times)]
    derived["anytime_accuracy"] = metrics.anytime_accuracy([e.accuracy for e in chosen], [e.seen for e in chosen])
    return derived
