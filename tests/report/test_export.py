from made_runs import make_result

from bgd.report.export import summary_records
from bgd.report.summary import compare


def test_records_hold_the_users_own_values():
    runs = [make_result("BGD", 0.9)]
    records = summary_records([compare(runs, changes=changes) for changes in ((), ("lr=1",))])
    assert [record["changes"] for record in records] == ["", "lr=1"]
