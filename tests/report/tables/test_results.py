import re

from made_runs import make_result

from bgd.report.summary import compare
from bgd.report.tables.catalog import all_tables
from bgd.report.tables.render import to_text
from bgd.report.tables.results import detail, overview


def test_seeds_are_counted_where_all_rows_have_the_same():
    both = compare([make_result(row, 0.9, seed) for row in ("BGD", "SGD") for seed in (1, 2)])
    assert [row[-2].text for row in detail(both).rows] == ["2", "2"]


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


def test_several_columns_give_an_overview(experiment):
    results = [
        make_result("BGD", 0.2, column="class"),
        make_result("BGD", 0.5, column="+ trick"),
        make_result("SGD", 0.3, column="class"),
    ]
    made = compare(results)
    first, second = all_tables(made)
    assert first == overview(made)
    assert first.headers == ("method", "+ trick", "class")
    assert [[cell.text for cell in row] for row in first.rows] == [["BGD", "50.00", "20.00"], ["SGD", "–", "30.00"]]
    assert "setting" in second.headers
    assert "paper, %" not in second.headers


def test_warnings_are_counted_in_the_table(results, experiment):
    collapsed = results[0].model_copy(update={"warnings": ["BGD's posterior has collapsed by step 10"]})
    made = compare([collapsed, *results[1:]], experiment)
    assert "3 (2019–2021), 1 with a warning" in to_text(detail(made))
