"""Watch a stream: predict each row, learn it where it has a label, raise alarms, and save all of it."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from bgd.errors import BGDError
from bgd.files import write_atomically
from bgd.streams.checking import finite, whole
from bgd.streams.drift import DriftAlarm, Event
from bgd.streams.estimators import StreamClassifier, StreamRegressor
from bgd.streams.lines import LineError, Reader, Row

RECENT = 1 / 200
"""Rate of the moving averages: they are of about the last 200 rows."""

SMALLEST = 1e-6


@dataclass(frozen=True)
class Outcome:
    """What was predicted for a row, and what came of it.

    Attributes:
        line: its number in the stream, from 1.
        prediction: None as long as nothing has been learnt.
        std: the epistemic std of the prediction, of a classification that of the predicted class's probability.
        probability: of the predicted class; None in a regression.
        label: None where the row has none.
        surprise: -log p(label), or of its density; None without a prediction or a label.
        alarm: that the row has raised.
    """

    line: int
    prediction: str | float | None = None
    std: float | None = None
    probability: float | None = None
    label: str | float | None = None
    surprise: float | None = None
    alarm: Event | None = None


@dataclass
class Counts:
    """What the view shows; sums over rows with a prediction and a label, moving averages of the same."""

    lines: int = 0
    learnt: int = 0
    unlabelled: int = 0
    malformed: int = 0
    tested: int = 0
    errors: float = 0.0
    surprise: float = 0.0
    recent_error: float = 0.0
    recent_surprise: float = 0.0
    recent_std: float = 0.0
    raised: int = 0
    alarms: list[dict[str, Any]] = field(default_factory=list)
    """The last ten, each with its line."""
    last_error: str = ""


class Watcher:
    """Predicts, then learns; its state is complete after every row.

    Args:
        target: the column of the labels.
        regression: labels are numbers to be predicted, not classes.
        alarm_every: rows between false alarms, on average and at least.

    >>> watcher = Watcher("rain")
    >>> for i in range(40):
    ...     outcome = watcher.take({"sky": "grey" if i % 2 else "blue", "rain": "yes" if i % 2 else "no"})
    >>> outcome.prediction, outcome.label, watcher.counts.learnt
    ('yes', 'yes', 40)
    """

    def __init__(self, target: str, *, regression: bool = False, alarm_every: float = 10_000) -> None:
        self.target, self.regression = target, regression
        kind = StreamRegressor if regression else StreamClassifier
        self.estimator: StreamClassifier | StreamRegressor = kind(alarms_per=float(alarm_every))
        self.std_alarm = DriftAlarm(alarm_every)
        self.counts, self.reader = Counts(), Reader()

    def read(self, content: bytes) -> Outcome | None:
        """Take a line; None for one without a row. A malformed line is counted, and changes nothing else.

        Raises:
            LineError: names the line and says what is wrong with it.
        """
        self.counts.lines += 1
        try:
            row = self.reader.row(content)
            return None if row is None else self.take(row, counted=True)
        except (LineError, ValueError) as error:
            self.counts.malformed += 1
            self.counts.last_error = f"line {self.counts.lines}: {error}"
            raise LineError(self.counts.last_error) from error

    def take(self, row: Row, *, counted: bool = False) -> Outcome:
        """Predict a row, and learn it where it has a label.

        Raises:
            ValueError: for a row without the column of the labels, or that the learner refuses; nothing has changed.
        """
        if self.target not in row:
            raise LineError(f"no column {self.target!r} (--target): there are {', '.join(row)}")
        features: Row = {name: value for name, value in row.items() if name != self.target and value is not None}
        if not features:
            raise LineError(f"no values but {self.target!r}")
        for name, value in features.items():
            if isinstance(value, float) and math.isinf(value):
                raise LineError(f"{name!r} is infinite")
        label = self._label(row[self.target])
        predicted = self._predict(features, label)
        counts = self.counts
        if label is not None:
            self.estimator.partial_fit([features], [label])
            alarm = next((event for event in self.estimator.events_[-1:] if event.at == counts.learnt), None)
        else:
            alarm = self.std_alarm.update(predicted["std"]) if "std" in predicted else None
        counts.lines += not counted
        counts.learnt += label is not None
        counts.unlabelled += label is None
        outcome = Outcome(line=counts.lines, label=label, alarm=alarm, **predicted)
        self._count(outcome)
        return outcome

    def _label(self, value: float | str | None) -> str | float | None:
        if value is None:
            return None
        if not self.regression:
            return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        if isinstance(value, str) or math.isinf(value):
            raise LineError(f"the label {value!r} is no finite number")
        return value

    def _predict(self, features: Row, label: str | float | None) -> dict[str, Any]:
        if not self.counts.learnt:
            return {}
        rows = [features]
        if isinstance(self.estimator, StreamRegressor):
            mean, total = float(self.estimator.predict(rows)[0]), float(self.estimator.predict_std(rows)[0])
            found: dict[str, Any] = {"prediction": mean}
            found["std"] = float(self.estimator.predict_std(rows, "epistemic")[0])
            if isinstance(label, float):
                scale = max(total, 1e-12)
                found["surprise"] = 0.5 * ((label - mean) / scale) ** 2 + math.log(scale * math.sqrt(2 * math.pi))
            return found
        p, std = self.estimator.predict_proba(rows)[0], self.estimator.predict_std(rows)[0]
        best, classes = int(np.argmax(p)), self.estimator.classes_.tolist()
        found = {"prediction": classes[best], "probability": float(p[best]), "std": float(std[best])}
        if label is not None:
            of_label = float(p[classes.index(label)]) if label in classes else 0.0
            found["surprise"] = -math.log(max(of_label, SMALLEST))
        return found

    def _count(self, outcome: Outcome) -> None:
        counts = self.counts
        if outcome.alarm is not None:
            kind = "uncertainty" if outcome.label is None else "surprise"
            counts.raised += 1
            counts.alarms = [*counts.alarms, {"line": outcome.line, "of": kind}][-10:]
        if outcome.std is not None:
            counts.recent_std += self._rate() * (outcome.std - counts.recent_std)
        if outcome.surprise is None or outcome.label is None:
            return
        wrong = float(outcome.prediction != outcome.label)
        if isinstance(outcome.label, float) and isinstance(outcome.prediction, float):
            wrong = abs(outcome.prediction - outcome.label)
        counts.tested += 1
        counts.errors += wrong
        counts.surprise += outcome.surprise
        counts.recent_error += self._rate() * (wrong - counts.recent_error)
        counts.recent_surprise += self._rate() * (outcome.surprise - counts.recent_surprise)

    def _rate(self) -> float:
        return max(RECENT, 1 / max(1, self.counts.tested))


def save_watcher(watcher: Watcher, folder: Path, position: int) -> None:
    """Write a checkpoint: whole, or the one before stays.

    The learner is a file of its own, which ``watch.json`` names: it counts once that is written. Earlier ones then go,
    and so do the drafts that a killed process has left.
    """
    folder.mkdir(parents=True, exist_ok=True)
    learner = ""
    if watcher.counts.learnt:
        learner = f"learner-{watcher.counts.lines}.bgd"
        watcher.estimator.save(folder / learner)
    state = {
        "version": 1,
        "settings": _settings(watcher),
        "position": position,
        "learner": learner,
        "reader": asdict(watcher.reader),
        "counts": asdict(watcher.counts),
        "std_alarm": watcher.std_alarm.state_dict(),
    }
    write_atomically(folder / "watch.json", json.dumps(state).encode())
    for old in (*folder.glob("learner-*"), *folder.glob("watch.json.*.tmp")):
        if old.name != learner:
            old.unlink()


def load_watcher(watcher: Watcher, folder: Path) -> int:
    """Continue from the checkpoint in a folder, if there is one; returns the position in the stream.

    Raises:
        BGDError: for a checkpoint of another stream, or a damaged one.
    """
    path = folder / "watch.json"
    if not path.exists():
        return 0
    try:
        state = json.loads(path.read_bytes())
        settings = dict(state["settings"])
        if settings == _settings(watcher):
            loaded, position = _watcher_of(watcher, folder, state)
            watcher.__dict__.update(vars(loaded))
            return position
    except (ValueError, LookupError, TypeError, AttributeError, OSError, RecursionError) as error:
        raise BGDError(f"{path}: no checkpoint of bgd watch ({error}): move {os.fspath(folder)} away") from error
    differs = ", ".join(f"{key}={value}" for key, value in settings.items() if _settings(watcher).get(key) != value)
    raise BGDError(f"{path}: was made with {differs}: give the same options, or another --checkpoint")


def _watcher_of(like: Watcher, folder: Path, state: dict[str, Any]) -> tuple[Watcher, int]:
    """The watcher of a state, every entry of which is checked, and its position in the stream."""
    watcher = Watcher(like.target, regression=like.regression, alarm_every=like.std_alarm.every)
    watcher.reader, watcher.counts = _reader_of(state["reader"]), _counts_of(state["counts"])
    name = state["learner"]
    if name != (f"learner-{watcher.counts.lines}.bgd" if watcher.counts.learnt else ""):
        raise ValueError(f"'learner' is {name!r}")
    if name:
        watcher.estimator = type(watcher.estimator).load(folder / name)
    watcher.std_alarm.load_state_dict(state["std_alarm"])
    if {watcher.estimator.alarms_per, watcher.std_alarm.every} != {like.std_alarm.every}:
        raise ValueError("the alarms are of another rate")
    return watcher, whole("position", state["position"])


def _reader_of(state: dict[str, Any]) -> Reader:
    reader = Reader(**state)
    names = reader.header or []
    if reader.kind not in ("", "csv", "json") or not all(isinstance(name, str) for name in [*names]):
        raise ValueError(f"'reader' is {state}")
    return reader


def _counts_of(state: dict[str, Any]) -> Counts:
    counts = Counts(**state)
    for one in fields(Counts):
        value = getattr(counts, one.name)
        if one.type == "int":
            whole(one.name, value)
        elif one.type == "float":
            finite(one.name, [value], 1)
    alarms = [{"line": whole("line", alarm["line"]), "of": str(alarm["of"])} for alarm in counts.alarms]
    if not isinstance(counts.last_error, str) or counts.alarms != alarms:
        raise ValueError("'alarms' or 'last_error' is no text")
    return counts


def _settings(watcher: Watcher) -> dict[str, Any]:
    return {
        "target": watcher.target,
        "regression": watcher.regression,
        "alarms-per": watcher.std_alarm.every,
    }
