import re

from bgd.report.summary import compare
from bgd.report.tables.measures import measures
from bgd.report.tables.render import to_text


def test_other_measures(comparison):
    text = to_text(measures(comparison))
    # forgetting is 10 (1 - end) percent for ends of 0.91, 0.92, 0.93: 0.9, 0.8, 0.7
    assert re.search(r"BGD +0.80 ± 0.10", text)
    assert "mc" not in text  # one way of inference is that of the main table
    assert measures(compare([])) is None
