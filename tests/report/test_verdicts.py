"""The verdict is generated: each value of the paper once, at the scale of its runs."""

import pytest
from made_runs import make_config, make_result

from bgd.experiments.declaration import Experiment, Reported, Row
from bgd.report.summary import compare
from bgd.report.verdicts import Outcome, count_outcomes, describe_cell, judge


def shortened(iterations):
    setup = make_config("BGD").setup.model_dump()
    return setup | {"stream": setup["stream"] | {"iterations": iterations}}


def declare(experiment, **changes) -> Experiment:
    return experiment.model_copy(update=changes)


def outcomes(*comparisons):
    return {(cell.row, cell.column): cell.outcome for item in judge(comparisons) for cell in item.cells}


BGD, SGD, ADAM = (("BGD", "accuracy"), ("SGD", "accuracy"), ("Adam", "accuracy"))


def test_as_stated_open_and_not_run(comparison):
    assert outcomes(comparison) == {BGD: Outcome.AS_STATED, SGD: Outcome.OPEN, ADAM: Outcome.NOT_RUN}


def test_smoke_tests_and_shortened_runs(experiment):
    runs = [make_result("BGD", 0.92, setup=shortened(99)), make_result("SGD", 0.85, setup=shortened(100))]
    found = outcomes(compare(runs, experiment))
    assert found[BGD] is Outcome.SMOKE  # though it agrees
    assert found[SGD] is Outcome.WITH_DEVIATION
    (item,) = judge([compare(runs, experiment)])
    assert "with “stream.iterations 100 instead of 1000” 85.00 (1 seed)" in describe_cell(item.cells[1])


def test_a_shortened_run_that_agrees_does_not_outweigh_a_full_one_that_does_not(experiment):
    full, short = make_result("SGD", 0.70), make_result("SGD", 0.85, setup=shortened(500))
    both = compare([full], experiment), compare([short], experiment, preset="short")
    assert outcomes(*both)[SGD] is Outcome.OPEN


def test_a_variant_of_a_row_is_a_named_deviation(experiment):
    rows = {**experiment.rows, "SGD, lr 0.1": Row(method="sgd", settings={"lr": 0.1})}
    declared = declare(experiment, rows=rows)
    runs = [make_result("SGD", 0.70), make_result("SGD, lr 0.1", 0.85, settings={"lr": 0.1})]
    (item,) = judge([compare(runs, declared)])
    cell = next(cell for cell in item.cells if cell.row == "SGD")
    assert cell.outcome is Outcome.WITH_DEVIATION
    assert describe_cell(cell) == (
        "SGD, accuracy: paper 85.00 ± 0.50; ours 70.00 (1 seed); with “lr 0.1” 85.00 (1 seed)"
    )


def test_a_candidate_with_the_settings_as_stated_is_no_deviation(experiment):
    """With fewer seeds the same settings agree more easily: that is no finding."""
    wide = [make_result("SGD", end, 2019 + i) for i, end in enumerate((0.60, 0.85))]
    exact = [make_result("SGD", 0.70 + 0.001 * i, 2019 + i) for i in range(4)]
    candidates = declare(experiment, name="candidates", candidates=True)
    runs = [
        run.model_copy(update={"config": run.config.model_copy(update={"experiment": "candidates"})}) for run in wide
    ]
    assert outcomes(compare(exact, experiment), compare(runs, candidates))[SGD] is Outcome.OPEN


def test_a_value_that_two_tables_print_is_one_cell(comparison, experiment):
    again = declare(experiment, name="again", title="Again")
    other = compare([make_result("BGD", 0.92, experiment="again")], again)
    assert sum(count_outcomes(judge([comparison])).values()) == 3
    items = judge([comparison, other])
    assert sum(count_outcomes(items).values()) == 3
    assert [len(item.cells) for item in items] == [3, 0]


def test_values_without_a_spread_are_cells_of_their_own_column(experiment):
    paper = {"BGD": {"accuracy": Reported(mean=92.0)}}
    one, two = (declare(experiment, name=name, paper=paper) for name in ("one", "two"))
    made = [compare([make_result("BGD", 0.92, experiment=d.name)], d) for d in (one, two)]
    assert sum(count_outcomes(judge(made)).values()) == 2


@pytest.mark.parametrize("seeds", [1, 10])
def test_scale_is_named(experiment, seeds):
    runs = [make_result("BGD", 0.92, 2019 + i) for i in range(seeds)]
    (item,) = judge([compare(runs, experiment)])
    assert [str(scale) for scale in item.scales] == ["full" if seeds == 10 else "fewer seeds"]
