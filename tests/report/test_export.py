from made_runs import make_result

from bgd.report.export import run_records, summary_records
from bgd.report.summary import compare


def test_records_hold_the_users_own_values():
    runs = [make_result("BGD", 0.9)]
    records = summary_records([compare(runs, overrides=overrides) for overrides in ((), ("lr=1",))])
    assert [record["overrides"] for record in records] == ["", "lr=1"]


def test_records_of_runs_hold_the_labels_and_the_method():
    made = [compare([make_result("BGD, capped", 0.9, column="class", method="bgd")])]
    (run,), (entry,) = run_records(made), summary_records(made)
    assert (run["row"], run["column"], run["method"]) == ("BGD, capped", "class", "bgd")
    assert (entry["row"], entry["column"]) == ("BGD, capped", "class")
