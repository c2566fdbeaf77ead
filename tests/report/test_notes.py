"""A report states what it would otherwise hide: rows that are missing, data and runs that do not count."""

from made_runs import make_result

from bgd.experiments.declaration import Preset
from bgd.report.notes import collect_notes
from bgd.report.summary import compare


def test_declared_rows_that_were_not_run_are_noted(experiment):
    declared = experiment.model_copy(update={"presets": {"paper": Preset(about="all of it")}})
    runs = [make_result(row, 0.9) for row in ("BGD", "SGD")]
    assert collect_notes(compare(runs, declared)) == ["Declared and not run: Adam; Offline"]
    everything = [make_result(row, 0.9) for row in declared.rows]
    assert collect_notes(compare(everything, declared)) == []


def test_a_missing_column_of_a_row_is_noted(experiment):
    setup = experiment.setup
    declared = experiment.model_copy(
        update={"presets": {"paper": Preset(about="all of it")}, "columns": {"short": setup, "long": setup}}
    )
    runs = [make_result(row, 0.9, column="short") for row in declared.rows]
    runs += [make_result(row, 0.9, column="long") for row in declared.rows if row != "Adam"]
    assert collect_notes(compare(runs, declared)) == ["Declared and not run: Adam (long)"]
