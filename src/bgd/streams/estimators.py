"""The learners for live streams, as scikit-learn estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_array,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from bgd.errors import SettingError
from bgd.streams.checking import finite, reading
from bgd.streams.classes import MEMBERS as CLASS_MEMBERS
from bgd.streams.classes import ClassMixture
from bgd.streams.drift import Event
from bgd.streams.encoding import Table, read_records
from bgd.streams.filters import Array
from bgd.streams.labels import Labels
from bgd.streams.mixture import Mixture
from bgd.streams.saving import load_mixture, save_mixture
from bgd.streams.surprise import SurpriseAlarm
from bgd.streams.targets import MEMBERS as TARGET_MEMBERS
from bgd.streams.targets import TargetMixture
from bgd.validation import check_choice


class _Stream(BaseEstimator):  # type: ignore[misc]
    """What both learners share: reading rows and weights, learning from the start, the alarm."""

    random_state: Any
    alarms_per: float | None
    partial_fit: Any
    _mixture: Mixture
    _alarm: SurpriseAlarm | None

    def __init__(self, random_state: Any = 0, alarms_per: float | None = None) -> None:
        self.random_state = random_state
        self.alarms_per = alarms_per

    @property
    def drift_(self) -> float:
        """Like a p-value: without a change, one as small comes at most once in 1 / ``drift_`` rows, on average."""
        return self._asked_alarm().score

    @property
    def events_(self) -> list[Event]:
        """The last alarms, at most 100, each with the row that raised it and the one where the change began."""
        return list(self._asked_alarm().events)

    def _asked_alarm(self) -> SurpriseAlarm:
        check_is_fitted(self, "_mixture")
        if self._alarm is None:
            raise SettingError("this learner has no alarm: make it with alarms_per=10_000, rows between false alarms")
        return self._alarm

    def _started_alarm(self) -> SurpriseAlarm | None:
        if not self._untouched:
            return self._alarm
        return None if self.alarms_per is None else SurpriseAlarm(self.alarms_per)

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn the rows once, in their order; for weights see ``partial_fit``."""
        fresh = type(self)(**self.get_params())
        fresh.partial_fit(X, y)
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update({name: value for name, value in vars(fresh).items() if name not in self.get_params()})
        return self

    @property
    def _untouched(self) -> bool:
        return "_mixture" not in vars(self)

    def _read(self, x: Any, **labels: Any) -> Table:
        """Rows that fit those before."""
        if self._is_plain(x):
            self.n_features_in_ = x.shape[1]
            return self._checked(Table(np.ascontiguousarray(x)))
        if (records := read_records(x)) is None:
            options = {"ensure_all_finite": "allow-nan", "dtype": np.float64, "accept_sparse": True}
            x = x.tocsr() if hasattr(x, "tocsr") else x
            found = validate_data(self, x, **labels, reset=self._untouched, **options)
            table = Table(np.ascontiguousarray(found.toarray() if hasattr(found, "toarray") else found))
        else:
            table = Table(None, records)
            if self._untouched:
                self.n_features_in_ = len(set().union(*records))
        return self._checked(table)

    def _is_plain(self, x: Any) -> bool:
        """Whether rows are a usable array, as before: then scikit-learn's checks find nothing.

        They cost more than learning a row, and the first time they look for packages with kinds of DataFrames.
        """
        return (
            type(x) is np.ndarray
            and not hasattr(self, "feature_names_in_")
            and x.dtype == np.float64
            and x.ndim == 2
            and x.size > 0
            and (bool(np.isfinite(x).all()) if self._untouched else x.shape[1] == self.n_features_in_)
        )

    def _checked(self, table: Table) -> Table:
        if not self._untouched:
            self._mixture.encoder.check(table)
        return table

    def _ask(self, x: Any) -> Table:
        if self._untouched:
            check_is_fitted(self, "_mixture")
        return self._read(x)

    def _importance(self, sample_weight: ArrayLike | None, table: Table) -> Array:
        if sample_weight is None:
            return np.ones(len(table))
        rows = np.empty((len(table), 1))
        found = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        if not found.any():
            raise SettingError("all sample weights are 0: there is nothing to learn")
        return np.asarray(found)

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags


class StreamClassifier(ClassifierMixin, _Stream):  # type: ignore[misc]
    """Classes of a stream that may drift: learns each batch once, without settings, boundaries or replay.

    Several Bayesian heads, on linear and on random Fourier features, with and without forgetting, learn side by side;
    they are weighted by how well they predicted what came next. See ``docs/streams.md``.

    Rows are arrays (NaN is missing), sparse matrices, DataFrames, or lists of dicts, with categories as strings.
    Features of dicts and of DataFrames with categories come and go; classes come at any time.

    Args:
        random_state: the seed of the random features. Equal seeds and data give equal learners.
        alarms_per: raise an alarm when the labels surprise more than they did, without a change at most once in so many
            rows on average; from 100. None for no alarm. It takes effect with the first batch.

    Attributes:
        drift_: like a p-value: without a change, one as small comes at most once in 1 / ``drift_`` rows.
        events_: the last alarms (:class:`bgd.streams.drift.Event`), rows counted from 0 as they were learnt.
        classes_: the labels so far, sorted.
        n_features_in_: the number of features of the first batch.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> learner = StreamClassifier()
        >>> for _ in range(20):
        ...     x = rng.normal(size=(16, 2))
        ...     learner = learner.partial_fit(x, np.where(x.prod(1) > 0, "same", "other"))
        >>> learner.predict([[1.0, 1.0], [-1.0, 1.0]])
        array(['same', 'other'], dtype='<U5')
    """

    _mixture: ClassMixture
    _labels: Labels

    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn a batch, once.

        Args:
            X: rows.
            y: their labels: strings, whole numbers or booleans, of one type for ever.
            classes: labels to come, so that they have a column in :meth:`predict_proba` before their first example.
            sample_weight: one per row, from 0; a weight of 2 counts as two examples.

        Raises:
            ValueError: where rows, labels or weights cannot be used; the learner is then as it was.
        """
        values = _label_values(y)
        table = self._read(X)
        _check_lengths(table, values)
        importance = self._importance(sample_weight, table)
        declared = [] if classes is None else np.unique(np.asarray(classes)).tolist()
        labels = Labels() if self._untouched else self._labels
        labels.check([*declared, *values])
        alarm = self._started_alarm()
        mixture = ClassMixture(CLASS_MEMBERS, self._seed()) if self._untouched else self._mixture
        mixture.encoder.check(table)
        used = np.flatnonzero(importance)
        labels.add(declared)
        codes = labels.add(values if len(used) == len(values) else [values[i] for i in used])
        if len(used) < len(table):
            table, importance = table.take(used.tolist()), importance[used]
        surprise = mixture.learn(table, codes, importance, len(labels.names))
        self._mixture, self._labels, self._alarm = mixture, labels, alarm
        if alarm is not None:
            alarm.update(surprise)
        if len(labels.names) > len(getattr(self, "classes_", ())):
            self.classes_, self._columns = np.unique(np.array(labels.names), return_index=True)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        proba = self.predict_proba(X)
        found: NDArray[Any] = self.classes_[proba.argmax(1)]
        return found

    def predict_proba(self, X: Any) -> Array:
        """The probability of each of ``classes_``, (rows, classes)."""
        table = self._ask(X)
        return self._mixture.proba(table)[:, self._columns]

    def predict_std(self, X: Any) -> Array:
        """The epistemic std of :meth:`predict_proba`, (rows, classes): what more data would remove."""
        table = self._ask(X)
        return self._mixture.std(table)[:, self._columns]

    def save(self, path: str | Path) -> None:
        """Write the learner to one file, whole or not at all; :meth:`load` gives it back bit for bit."""
        check_is_fitted(self, "_mixture")
        extra = {"classes": self._labels.names, **_common(self)}
        save_mixture(Path(path), self._mixture, extra)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The learner that :meth:`save` wrote. Reading never runs code from the file."""
        learner = cls()
        with reading(Path(path)):
            mixture, extra = load_mixture(Path(path), ClassMixture, CLASS_MEMBERS)
            learner._mixture, learner._labels = mixture, Labels()
            learner._labels.check(extra["classes"])
            learner._labels.add(extra["classes"])
            if len(learner._labels.names) != mixture.outputs:
                raise ValueError(f"'classes' are {extra['classes']}")
            learner.classes_, learner._columns = np.unique(np.array(learner._labels.names), return_index=True)
            _restore(learner, extra)
        return learner


class StreamRegressor(RegressorMixin, _Stream):  # type: ignore[misc]
    """Numbers of a stream that may drift: one output or several, with unknown noise.

    Rows and parameters as for :class:`StreamClassifier`; the prediction of each member is Student's t.

    Args:
        random_state: the seed of the random features.
        alarms_per: as for :class:`StreamClassifier`; so are the attributes ``drift_`` and ``events_``.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(300, 2))
        >>> learner = StreamRegressor().partial_fit(x, 100 + x @ [3.0, 1.0])
        >>> learner.predict([[1.0, 1.0]]).round(1)
        array([104.])
    """

    _mixture: TargetMixture

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn a batch, once.

        Args:
            X: rows.
            y: targets, (rows,) or (rows, outputs).
            sample_weight: one per row, from 0.

        Raises:
            ValueError: where rows, targets or weights cannot be used; the learner is then as it was.
        """
        values, single = _target_values(y)
        table = self._read(X)
        _check_lengths(table, values)
        importance = self._importance(sample_weight, table)
        if not self._untouched and values.shape[1] != self._mixture.outputs:
            raise SettingError(f"y has {values.shape[1]} outputs, but this learner has {self._mixture.outputs}")
        alarm = self._started_alarm()
        mixture = TargetMixture(TARGET_MEMBERS, self._seed()) if self._untouched else self._mixture
        mixture.encoder.check(table)
        used = np.flatnonzero(importance)
        surprise = mixture.learn(table.take(used.tolist()), values[used], importance[used])
        self._mixture, self._single, self._alarm = mixture, single, alarm
        if alarm is not None:
            alarm.update(surprise)
        return self

    def predict(self, X: Any) -> Array:
        """The mean of what will be observed."""
        table = self._ask(X)
        return self._shaped(self._mixture.predict(table))

    def predict_std(self, X: Any, kind: Literal["total", "epistemic"] = "total") -> Array:
        """The std of what will be observed, or its epistemic part: what more data would remove."""
        check_choice("kind", kind, ("total", "epistemic"))
        table = self._ask(X)
        return self._shaped(self._mixture.std(table, kind == "epistemic"))

    def _shaped(self, outputs: Array) -> Array:
        return outputs[:, 0] if self._single else outputs

    def save(self, path: str | Path) -> None:
        """Write the learner to one file, whole or not at all; :meth:`load` gives it back bit for bit."""
        check_is_fitted(self, "_mixture")
        extra = {"single": self._single, **_common(self)}
        save_mixture(Path(path), self._mixture, extra)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The learner that :meth:`save` wrote. Reading never runs code from the file."""
        learner = cls()
        with reading(Path(path)):
            mixture, extra = load_mixture(Path(path), TargetMixture, TARGET_MEMBERS)
            learner._mixture = mixture
            learner._single = bool(extra["single"]) and mixture.outputs == 1
            _restore(learner, extra)
        return learner

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags


def _check_lengths(table: Table, values: Any) -> None:
    if len(table) != len(values):
        raise SettingError(f"X and y have inconsistent numbers of rows: {len(table)} and {len(values)}")


def _label_values(y: Any) -> list[Any]:
    """Labels as a list of Python values."""
    if y is None:
        raise SettingError("this learner requires y to be passed, but the target y is None")
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuUS":
        return list(y.tolist())
    column = column_or_1d(y, warn=True)
    assert_all_finite(column, input_name="y")
    check_classification_targets(column)
    if column.dtype.kind == "O":
        missing = [i for i, value in enumerate(column) if value is None or value != value]
        if missing:
            raise SettingError(f"y has no label in row {missing[0]}: drop that row")
    return list(column.tolist())


def _target_values(y: Any) -> tuple[Array, bool]:
    """Targets as (rows, outputs), and whether they were one column without a second axis."""
    if y is None:
        raise SettingError("this learner requires y to be passed, but the target y is None")
    values = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    if values.ndim == 2 and values.shape[1] == 1:
        column_or_1d(y, warn=True)
        return values, True
    return (values[:, None], True) if values.ndim == 1 else (values, False)


def _common(learner: _Stream) -> dict[str, Any]:
    """What both learners save beside the mixture."""
    names = getattr(learner, "feature_names_in_", None)
    return {
        "features": {"number": learner.n_features_in_, "names": None if names is None else names.tolist()},
        "random_state": learner._seed(),
        "alarms_per": learner.alarms_per,
        "alarm": None if learner._alarm is None else learner._alarm.state_dict(),
    }


def _restore(learner: _Stream, extra: dict[str, Any]) -> None:
    """What :func:`_common` gave, checked."""
    features, width = extra["features"], learner._mixture.encoder.width
    names, number = features["names"], features["number"]
    if type(number) is not int or (width is not None and number != width):
        raise ValueError(f"'number' of features is {number!r}")
    if names is not None and (len(names) != number or not all(isinstance(name, str) for name in names)):
        raise ValueError(f"'names' of features are {names!r}")
    learner.n_features_in_ = number
    if names is not None:
        learner.feature_names_in_ = np.array(names, dtype=object)
    learner.random_state = extra["random_state"]
    learner._seed()
    if (every := extra["alarms_per"]) is not None:
        finite("alarms_per", [every], 1)
    learner.alarms_per = every
    learner._alarm = None if extra["alarm"] is None else SurpriseAlarm.of(extra["alarm"])
