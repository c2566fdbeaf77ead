"""The training loop of a run, from its start or last checkpoint to its end."""

from __future__ import annotations

import time
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from bgd.methods.common.posterior import PosteriorLearner
from bgd.methods.registry import find_method, settings_of
from bgd.optim.diagnostics import collapse_warnings_to
from bgd.runs.build import build_learner, build_stream
from bgd.runs.checkpoints import CheckpointTimer
from bgd.runs.clock import Clock, Times
from bgd.runs.code import code_digest
from bgd.runs.config import RunConfig
from bgd.runs.data import data_digest, data_note
from bgd.runs.environment import describe, join_versions
from bgd.runs.errors import DamagedRun, Interrupted
from bgd.runs.folder import RunFolder, read_machine, write_json
from bgd.runs.measure import Measurements, Measurer
from bgd.runs.options import Options
from bgd.runs.own_modules import import_folders
from bgd.runs.prequential import PrequentialMeasurer
from bgd.runs.progress import TICK, ProgressReporter, Report
from bgd.runs.randomness import generator_states, restore_generators
from bgd.runs.result import Machine, RunResult
from bgd.runs.stop import StopRequest
from bgd.runs.summary import summarise
from bgd.scenarios import Batch, Prequential


class Runner:
    """Trains, and lets its parts measure, report, time and save.

    Args:
        config: validated.
        folder: opened.
        options: threads and checkpoints.
        stop: set when the run is to save and end.
        report: called with the progress.
    """

    def __init__(
        self, config: RunConfig, folder: RunFolder, options: Options, stop: StopRequest, report: Report
    ) -> None:
        self.config, self.folder, self.options, self.stop = config, folder, options, stop
        self.stream = build_stream(config)
        self.learner = build_learner(config, self.stream)
        self.progress = ProgressReporter(report, self.stream.stages, len(self.stream), self.stream.tasks.names)
        self.measurer: Measurements
        if isinstance(self.stream, Prequential):
            self.measurer = PrequentialMeasurer(config, self.stream, self.learner, folder.metrics)
        else:
            self.measurer = Measurer(config, self.stream, self.learner, folder.metrics, self.progress)
        self.iteration, self.sessions = 0, 1
        self.previous: Machine | None = None

    def complete(self) -> RunResult:
        """Run to the end."""
        (self.folder.path / "failure.txt").unlink(missing_ok=True)  # of an earlier attempt
        self.start()
        write_json(self.folder.path / "environment.json", self.machine())
        events, measure = self.measurer.schedule.events, self.measurer.measure
        with collapse_warnings_to(lambda text: self.measurer.record_warning(self.iteration, text)):
            if self.iteration == 0:
                measure(0)
            for event in events[bisect_left(events, self.iteration + 1) :]:
                self.train_until(event)
                measure(event)
                self.checkpoint_or_stop()
            if isinstance(self.learner, PosteriorLearner):
                self.learner.check_posterior()
        result = summarise(
            self.config,
            self.folder.metrics.records,
            task_names=self.stream.tasks.names,
            stages=self.stream.stages,
            data_note=data_note(self.config.setup.data),
            upper_bound=find_method(self.config.method).upper_bound,
        )
        if self.options.keep:
            self.save()
        machine = self.machine().model_copy(update={"finished": datetime.now(UTC).isoformat(timespec="seconds")})
        self.folder.finish(result, machine, self.options.keep)
        return result.model_copy(update={"machine": machine})

    def start(self) -> None:
        """Restore the last good checkpoint, if there is one, and start the clocks."""
        before = self.restore()
        self.progress.report(self.iteration, "starting")
        self.checkpoint_timer = CheckpointTimer(self.options.checkpoint_seconds)
        self.clock = Clock(self.config.device)
        self.clock.start(before)

    def train_until(self, event: int) -> None:
        """Train on the batches up to an event, and end the task there if the scenario reveals it."""
        batch_of, observe, device = self.stream.batch, self.learner.observe, self.config.device
        add_loss, now, stop, clock = self.measurer.losses.add, time.perf_counter, self.stop, self.clock
        always = not self.options.checkpoint_seconds
        test_first = self.measurer.test_first
        clock.start_training()
        tick = now() + TICK
        for i in range(self.iteration, event):
            x, y, task = batch_of(i)
            if device != "cpu":
                x, y = x.to(device), y.to(device)
            if test_first is not None:
                test_first(x, y)
            add_loss(observe(x, y, task))
            self.iteration = i + 1
            # not at the event itself: the state is complete only once the event is over
            if (stop.requested or now() >= tick or always) and i + 1 < event:
                clock.stop_training()
                self.checkpoint_or_stop()
                clock.start_training()
                tick = now() + TICK
        if self.stream.reveals_boundary_at(event - 1):
            self.learner.end_task(self.replay_task(self.stream.stages.index(event)))
        clock.stop_training()

    def replay_task(self, task: int) -> Iterator[Batch]:
        """A task's training samples, for a learner that measures something when it has ended."""
        device = self.config.device
        for x, y, revealed in self.stream.train_batches(task, self.config.setup.stream.batch_size):
            self.progress.report_throttled(self.iteration, "consolidating")
            yield Batch(x.to(device), y.to(device), revealed)

    def checkpoint_or_stop(self) -> None:
        """Between two iterations: report the progress, save if a checkpoint is due, stop if that was requested."""
        self.progress.report(self.iteration)
        if self.iteration == len(self.stream):
            return
        if self.stop.requested:
            self.save()
            raise Interrupted(
                f"interrupted at iteration {self.iteration} of {len(self.stream)}, all saved; continue with: "
                f"bgd resume {self.folder.path}"
            )
        if self.checkpoint_timer.due():
            self.save()

    def save(self) -> None:
        """Write a checkpoint."""
        began, losses = time.perf_counter(), self.measurer.losses
        state = {
            "config": self.config.digest,
            "iteration": self.iteration,
            "learner": self.learner.state_dict(),
            "generators": generator_states(self.config.device),
            "loss": [losses.total, losses.count],
            "measurer": self.measurer.state_dict(),
            "times": list(self.clock.now()),
            "sessions": self.sessions,
        }
        self.folder.checkpoints.save(self.iteration, state)
        self.checkpoint_timer.saved(began)

    def restore(self) -> Times:
        """Load the last good checkpoint, or begin at the start; returns the times up to there."""
        state = self.folder.checkpoints.load()
        for name in self.folder.checkpoints.damaged:
            outcome = f"continues from iteration {state['iteration']}" if state else "starts again"
            warnings.warn(f"{self.folder.path / name} is damaged: this run {outcome}", RuntimeWarning, stacklevel=2)
        self.folder.metrics.truncate(state["metrics"] if state else None)
        if state is None:
            return Times()
        if state.get("config", self.config.digest) != self.config.digest:
            file = self.folder.path / "config.json"
            raise DamagedRun(
                f"{file} has changed since the last checkpoint: restore it, or remove {file.parent} and run again"
            )
        self.learner.load_state_dict(state["learner"])
        restore_generators(state["generators"], self.config.device)
        self.iteration, self.sessions = state["iteration"], state["sessions"] + 1
        self.measurer.losses.total, self.measurer.losses.count = state["loss"]
        self.measurer.load_state_dict(state["measurer"])
        self.previous = read_machine(self.folder.path)
        return Times(*state["times"])

    def machine(self) -> Machine:
        """This machine, with the time spent so far; where a run was resumed elsewhere, both versions are named."""
        now = describe(self.options.threads, data_digest(self.config.setup.data), code_digest(self.config))
        updates: dict[str, Any] = {
            "versions": join_versions(self.previous, now) if self.previous else now.versions,
            "keep": self.options.keep,
            "sessions": self.sessions,
            "settings": settings_of(self.config.method) | self.config.settings,
            "import_paths": import_folders(self.config),
        }
        return now.model_copy(update=updates | self.clock.now()._asdict())
