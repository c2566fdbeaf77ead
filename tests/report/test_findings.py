import pytest
from made_runs import make_config, make_result

from bgd.report.findings import compare_highlighted, headline
from bgd.report.summary import Unfinished, compare


def runs(row, *ends, column="accuracy"):
    return [make_result(row, end, 2019 + i, column) for i, end in enumerate(ends)]


def test_says_which_is_highest_and_whether_by_chance():
    clear = compare([*runs("BGD", 0.90, 0.91, 0.92), *runs("SGD", 0.70, 0.71, 0.72)])
    close = compare([*runs("BGD", 0.80, 0.90, 1.00), *runs("SGD", 0.70, 0.89, 0.99)])
    assert headline(clear) == (
        "Over 3 seeds, BGD (91.00 ± 1.00 %) is highest, 20.00 points above SGD (71.00 ± 1.00 %), beyond chance."
    )
    assert headline(close).endswith("within chance.")


def test_one_seed_says_so_and_claims_no_spread():
    text = headline(compare([*runs("BGD", 0.9), *runs("SGD", 0.8)]))
    assert (
        text == "On one seed, which cannot exclude chance, BGD (90.00 %) is highest, 10.00 points above SGD (80.00 %)."
    )


def test_equal_means_are_level():
    made = compare([*runs("BGD", 0.9, 0.9), *runs("SGD", 0.9, 0.9), *runs("Adam", 0.8, 0.8)])
    assert headline(made) == "Over 2 seeds, BGD (90.00 ± 0.00 %) and SGD (90.00 ± 0.00 %) are level at the top."


def test_upper_bounds_and_what_diverged_lead_nothing():
    made = compare([*runs("Offline", 0.99, 0.99), *runs("SGD", 0.8, 0.8), *runs("BGD", 0.7, float("nan"))])
    assert headline(made) == (
        "BGD (diverged); Offline (99.00 ± 0.00 %); SGD (80.00 ± 0.00 %): there is nothing to compare."
    )


def test_many_settings_are_counted():
    columns = [f"setting {i}" for i in range(5)]
    made = compare(
        [r for c in columns for row, end in (("BGD", 0.9), ("SGD", 0.8)) for r in runs(row, end, end + 0.01, column=c)]
    )
    assert headline(made) == "Over 2 seeds, of 5 settings, the highest is BGD in 5; beyond chance in 5."


def test_failures_are_part_of_the_finding():
    done = [*runs("BGD", 0.9, 0.9), *runs("SGD", 0.8, 0.8)]
    done[0] = done[0].model_copy(update={"warnings": ["collapsed"]})
    text = headline(compare(done, unfinished=[Unfinished(make_config("SGD", 2021), "failed")]))
    assert text.endswith("; 1 of 4 runs have a warning and 1 failed.")


@pytest.mark.parametrize("claim", ["BGD keeps what it has learnt"])
def test_never_the_papers_claim(comparison, claim):
    assert claim in comparison.experiment.shows
    assert claim not in headline(comparison)


def test_a_smoke_test_finds_nothing(experiment):
    setup = make_config("BGD").setup.model_dump()
    short = setup | {"stream": setup["stream"] | {"iterations": 20}}
    made = compare([make_result("BGD", 0.9, setup=short), make_result("SGD", 0.8, setup=short)], experiment)
    assert headline(made).startswith("A smoke test: 2 runs")
    assert compare_highlighted(made) == []


def test_the_emphasised_method_is_not_hidden_where_it_loses(results, experiment):
    declared = experiment.model_copy(update={"highlight": "SGD"})
    (line,) = compare_highlighted(compare(results, declared))
    assert line == "SGD (81.00 ± 1.41 %), 11.00 points below BGD (92.00 ± 1.00 %), beyond chance."
