import re

import pytest
from made_runs import make_config, make_result

from bgd.experiments.declaration import Reported
from bgd.report.export import summary_records
from bgd.report.load import ReportError
from bgd.report.side_by_side import pair_up, title
from bgd.report.statistics import Summary, Verdict
from bgd.report.summary import Comparison, Unfinished, compare, same_and_different, settings
from bgd.report.tables import detail, each_task, extras, measures, overview, tables, times, to_markdown, to_text
from bgd.runs.result import Machine


def test_means_spreads_and_verdicts(comparison):
    bgd, sgd = comparison.entries["BGD", "accuracy"], comparison.entries["SGD", "accuracy"]
    assert bgd.ours == Summary(pytest.approx(92), pytest.approx(1), 3)
    assert (bgd.verdict, sgd.verdict) == (Verdict.AGREES, Verdict.LOWER)
    assert comparison.verdicts == [Verdict.AGREES, Verdict.LOWER]


def test_best_leaves_out_the_upper_bound(comparison):
    assert [entry.row for entry in comparison.entries.values() if entry.best] == ["BGD"]


def test_best_is_decided_on_common_seeds():
    """A seed can be easier than another: a mean over other seeds proves nothing."""
    easy, hard = 2020, 2019
    ours = [make_result("BGD", 0.89, hard), make_result("BGD", 0.93, easy)]

    def best(*others):
        return [entry.row for entry in compare([*ours, *others]).entries.values() if entry.best]

    assert best(make_result("SGD", 0.92, easy)) == ["BGD"]  # 91 against 92 on average, but 93 against 92
    assert best(make_result("SGD", 0.94, easy)) == ["SGD"]
    assert best(make_result("SGD", 0.80, 7)) == []
    assert best(make_result("SGD", 0.93, easy), make_result("SGD", 0.89, hard)) == ["BGD", "SGD"]


def test_seeds_are_counted_where_all_rows_have_the_same():
    both = compare([make_result(row, 0.9, seed) for row in ("BGD", "SGD") for seed in (1, 2)])
    assert [row[-2].text for row in detail(both).rows] == ["2", "2"]


def test_time_is_that_of_the_processor_where_a_run_has_measured_it():
    def run(seed, **machine):
        return make_result("SGD", 0.9, seed).model_copy(update={"machine": Machine(**machine)})

    mixed = compare([run(1, seconds=900.0), run(2, seconds=30.0, work_seconds=20.0)])
    assert mixed.entries["SGD", "accuracy"].seconds == 20.0
    clock = compare([run(1, seconds=900.0)])
    assert clock.entries["SGD", "accuracy"].seconds == 900.0


def test_settings_that_play_no_part_are_not_shown():
    same, _ = settings(compare([make_result("SGD", 0.9)]))
    assert {"stream.iterations", "stream.beta", "tasks.count", "net.widths"} <= set(same)
    assert not {"stream.epochs", "stream.start", "stream.moments", "tasks.degrees", "data.mix"} & set(same)


def test_detail_in_plain_text(comparison):
    lines = to_text(detail(comparison)).splitlines()
    assert lines[0] == "Continuous permuted digits"
    assert [re.split(r" {2,}", line) for line in lines[1:]] == [
        ["method", "ours, %", "paper, %", "ours - paper", "agreement", "seeds", "time a run"],
        ["BGD", "92.00 ± 1.00", "92.00 ± 1.00", "+0.00 (SE 0.66)", "✓ agrees", "3 (2019–2021)", "12 s"],
        ["SGD", "81.00 ± 1.41", "85.00 ± 0.50", "-4.00 (SE 1.01)", "↓ lower", "2 of 3 (2019, 2020)", "4.0 s"],
        ["Adam", "failed", "60.00 ± 0.50", "–", "no result", "0 of 1, 1 failed", "–"],
        ["Offline", "97.00", "–", "–", "not in the paper", "1 (2019)", "4.0 s"],
    ]
    assert len({line.index("±", 20) for line in lines[2:4]}) == 1  # columns are aligned


def test_markdown_has_the_best_in_bold(comparison):
    lines = to_markdown(detail(comparison)).splitlines()
    assert lines[0] == "| method | ours, % | paper, % | ours - paper | agreement | seeds | time a run |"
    assert lines[2].startswith("| BGD | **92.00 ± 1.00** | 92.00 ± 1.00 |")
    assert "**" not in "".join(lines[3:])
    assert {line.count("|") for line in lines} == {8}


def test_several_columns_give_an_overview(experiment):
    results = [
        make_result("BGD", 0.2, column="class"),
        make_result("BGD", 0.5, column="+ trick"),
        make_result("SGD", 0.3, column="class"),
    ]
    made = compare(results)
    first, second = tables(made)
    assert first == overview(made)
    assert first.headers == ("method", "+ trick", "class")
    assert [[cell.text for cell in row] for row in first.rows] == [["BGD", "50.00", "20.00"], ["SGD", "–", "30.00"]]
    assert "setting" in second.headers
    assert "paper, %" not in second.headers


def test_order_is_that_of_the_declaration(results, experiment):
    assert compare(results[::-1], experiment).rows == ("BGD", "SGD", "Offline")
    assert compare(results[::-1]).rows == ("BGD", "Offline", "SGD")


def test_another_scale_is_never_said_to_agree(experiment):
    shorter = make_result("BGD", 0.92, setup=_changed(iterations=999))
    otherwise = make_result("BGD", 0.92, settings={"std_init": 0.06, "mc_samples": 2})
    stand_in = make_result("BGD", 0.92).model_copy(update={"data_note": "made from the test images alone"})
    for run in (shorter, otherwise, stand_in):
        made = compare([run], experiment)
        assert made.entries["BGD", "accuracy"].verdict is Verdict.UNKNOWN
        assert "not the paper's runs" in to_text(detail(made))


def test_the_papers_own_runs_are_compared_whatever_their_preset_is_called(experiment):
    setup = make_config("BGD").setup.model_dump() | {"test": {"evaluations": 7}}
    run = make_result("BGD", 0.92, preset="long", setup=setup)
    assert compare([run], experiment).entries["BGD", "accuracy"].verdict is Verdict.AGREES


def test_how_steps_are_computed_does_not_matter(experiment):
    config = make_config("BGD")
    setup = config.setup.model_dump() | {"net": config.setup.net.model_dump() | {"precision": "bfloat16"}}
    run = make_result("BGD", 0.92, setup=setup, settings=config.settings | {"chunk_size": 2, "noise": "hash"})
    assert compare([run], experiment).entries["BGD", "accuracy"].verdict is Verdict.AGREES


def test_looking_more_often_does_not_matter(experiment):
    setup = make_config("BGD").setup.model_dump()
    setup["test"] |= {"curve": 50, "stds": 5, "train": 100}
    assert compare([make_result("BGD", 0.92, setup=setup)], experiment).entries["BGD", "accuracy"].comparable


def test_the_upper_bound_is_never_the_best_on_a_task(results):
    table = each_task(compare(results), "accuracy")
    assert table is not None
    bold = {row[0].text for row in table.rows for cell in row[2:] if cell.bold}
    assert bold == {"BGD"}


def _changed(**stream):
    setup = make_config("BGD").setup.model_dump()
    return setup | {"stream": setup["stream"] | stream}


def test_labels_cannot_break_a_table():
    label = "BGD | [bold]*x*[/] <script>"
    made = compare([make_result(label, 0.5), make_result("SGD", 0.4)])
    assert label in to_text(detail(made))
    markdown = to_markdown(detail(made))
    assert "<script>" not in markdown
    assert len({line.replace("\\|", "").count("|") for line in markdown.splitlines()}) == 1


def test_a_comparison_of_which_nothing_is_done():
    made = compare([], unfinished=[Unfinished(make_config("BGD"), "not finished")])
    assert "not finished" in to_text(detail(made))
    assert not made.verdicts


def test_same_and_different():
    same, rest = same_and_different({"a": {"x": {"y": 1, "z": 2}}, "b": {"x": {"y": 1, "z": 3}, "w": None}})
    assert same == {"x.y": 1}
    assert rest == {"a": {"x.z": 2}, "b": {"x.z": 3, "w": None}}
    assert same_and_different({}) == ({}, {})


def test_a_warning_is_seen_in_the_table(results, experiment):
    collapsed = results[0].model_copy(update={"warnings": ["BGD's posterior has collapsed by step 10"]})
    made = compare([collapsed, *results[1:]], experiment)
    assert "3 (2019–2021), 1 with a warning" in to_text(detail(made))


def test_other_measures(comparison):
    text = to_text(measures(comparison))
    # forgetting is 10 (1 - end) percent for ends of 0.91, 0.92, 0.93: 0.9, 0.8, 0.7
    assert re.search(r"BGD +0.80 ± 0.10", text)
    assert "mc" not in text  # one way of inference is that of the main table
    assert measures(compare([])) is None


def test_each_task_ours_beside_the_papers(results, experiment):
    said = {"BGD": {"accuracy": Reported(mean=92, tasks=(95, 94, 93, 92, 86))}}
    told = experiment.model_copy(update={"paper": said})
    table = each_task(compare(results, told), "accuracy")
    assert table.headers == ("method", "average", "task 1", "task 2", "task 3", "task 4", "task 5")
    bgd, sgd, offline = table.rows
    # after the last stage every task ends at the run's own accuracy: 91, 92, 93
    assert [cell.text for cell in bgd] == [
        "BGD",
        "92.00 ± 1.00 / 92.00",
        *(f"92.00 ± 1.00 / {p}.00" for p in (95, 94, 93, 92, 86)),
    ]
    assert sgd[2].text == "81.00 ± 1.41 / –"
    assert [[cell.bold for cell in row[2:]] for row in (bgd, sgd, offline)] == [[True] * 5, [False] * 5, [False] * 5]
    assert table in extras(compare(results, told))
    assert not extras(compare(results, experiment))  # neither in the paper nor asked for
    asked = experiment.model_copy(update={"figures": ("each-task",)})
    assert [t.title for t in extras(compare(results, asked))] == ["Accuracy on each task at the end, %"]


def test_times_are_multiples_of_one_row(experiment):
    setup = {"scenario": "domain", "tasks": {"count": 5}, "stream": {"kind": "discrete", "epochs": 2}}
    runs = [
        make_result(row, 0.9, seed, setup=setup).model_copy(update={"machine": Machine(train_seconds=seconds)})
        for row, seed, seconds in (("SGD", 1, 30), ("SGD", 2, 50), ("BGD", 1, 100))
    ]
    said = {"SGD": {"accuracy": Reported(seconds=7.8)}, "BGD": {"accuracy": Reported(mean=89.04, seconds=83.8)}}
    timed = experiment.model_copy(update={"paper": said, "times_of": "SGD"})
    table = times(compare(runs, timed))
    assert table.headers == ("method", "accuracy, %", "paper's", "s an epoch", "x SGD", "paper's s", "paper's x SGD")
    # two epochs of five tasks: 40 s / 10 and 100 s / 10
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["BGD", "90.00", "89.04", "10", "2.5", "83.8", "10.7"],
        ["SGD", "90.00 ± 0.00", "–", "4", "1.0", "7.8", "1.0"],
    ]
    assert times(compare(runs, experiment)) is None
    fading = {"scenario": "continuous task-agnostic", "stream": {"kind": "continuous", "iterations": 100}}
    without_epochs = [
        make_result("SGD", 0.9, 3, setup=setup | fading).model_copy(
            update={"machine": Machine(train_seconds=3), "iterations": 100}
        )
    ]
    table = times(compare(without_epochs, experiment.model_copy(update={"times_of": "SGD"})))
    assert (table.title, table.headers[-2:]) == ("Time of a training step", ("ms a step", "x SGD"))
    assert [cell.text for cell in table.rows[-1]][-2:] == ["30", "1.0"]
    assert [row[5].text for row in times(compare(runs[2:], timed)).rows] == ["83.8"]


def test_the_papers_values_of_tasks_do_not_stand_beside_a_stand_in(experiment):
    said = {"BGD": {"accuracy": Reported(mean=92, tasks=(95, 94, 93, 92, 86))}}
    told = experiment.model_copy(update={"paper": said})
    setup = make_config("BGD").setup.model_dump() | {"data": {"name": "mnist"}}
    table = each_task(compare([make_result("BGD", 0.92, setup=setup)], told), "accuracy")
    assert [cell.text for cell in table.rows[0]] == ["BGD", *["92.00"] * 6]


def at(preset: str, *changes: str, name: str = "made") -> Comparison:
    return compare([make_result("BGD", 0.9, preset=preset, experiment=name)], changes=changes)


def test_a_scale_stands_beside_its_own_and_is_named_where_it_cannot():
    assert [b.preset for _, b in pair_up([at("paper"), at("short")], [at("short"), at("paper")])] == ["paper", "short"]
    assert [a.preset for a, _ in pair_up([at("paper"), at("short")], [at("short")])] == ["short"]
    with pytest.raises(ReportError, match="nothing in common"):
        pair_up([at("paper"), at("quick")], [at("short")])
    ((a, b),) = pair_up([at("paper"), at("short", name="other")], [at("short", "lr=1"), at("short", name="third")])
    assert title(a, b) == "made (A: paper; B: short, lr=1)"
    assert title(a, a) == "made"


def test_records_for_programs_tell_own_values_apart():
    records = summary_records([at("paper"), at("paper", "lr=1")])
    assert [record["changes"] for record in records] == ["", "lr=1"]


def test_candidates_for_one_value_are_not_counted(results, experiment):
    several = compare(results, experiment.model_copy(update={"candidates": True}))
    assert several.verdicts == []
    assert "✓ agrees" in to_text(detail(several))
