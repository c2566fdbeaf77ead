"""The table of log-loss and calibration error, where a declaration asks for it."""

import pytest
from made_runs import make_result

from bgd.report.summary import compare
from bgd.report.tables.calibration import calibration
from bgd.report.tables.catalog import extra_tables


def with_error(row, error, seed=2019):
    run = make_result(row, 0.9, seed)
    last = run.evaluations[-1].model_copy(update={"calibration_error": error, "loss": [0.2, 0.4]})
    return run.model_copy(update={"evaluations": [*run.evaluations[:-1], last]})


def test_only_a_declaration_that_asks_has_it(experiment):
    runs = [with_error("BGD", 0.02), with_error("BGD", 0.04, 2020), make_result("SGD", 0.8)]
    asking = experiment.model_copy(update={"calibration": True})
    table = calibration(compare(runs, asking))
    assert [[cell.text for cell in row] for row in table.rows] == [["BGD", "0.300 ± 0.000", "3.00 ± 1.41", "2"]]
    assert table in extra_tables(compare(runs, asking))
    assert calibration(compare(runs, experiment)) is None
    assert calibration(compare([make_result("SGD", 0.8)], asking)) is None


@pytest.mark.parametrize("calibrated", [True, False])
def test_no_runs_no_table(experiment, calibrated):
    assert calibration(compare([], experiment.model_copy(update={"calibration": calibrated}))) is None
