from made_runs import make_result

from bgd.report.summary import compare
from bgd.report.tables import to_html
from bgd.report.tables.render import to_markdown, to_text
from bgd.report.tables.results import detail


def test_markdown_has_the_best_in_bold(comparison):
    lines = to_markdown(detail(comparison)).splitlines()
    assert lines[0] == "| method | ours, % | paper, % | ours - paper | agreement | seeds | time a run |"
    assert lines[2].startswith("| BGD | **92.00 ± 1.00** | 92.00 ± 1.00 |")
    assert "**" not in "".join(lines[3:])
    assert {line.count("|") for line in lines} == {8}


def test_labels_cannot_break_a_table():
    label = "BGD | [bold]*x*[/] <script>"
    made = compare([make_result(label, 0.5), make_result("SGD", 0.4)])
    assert label in to_text(detail(made))
    markdown = to_markdown(detail(made))
    assert "<script>" not in markdown
    assert len({line.replace("\\|", "").count("|") for line in markdown.splitlines()}) == 1


def test_a_notebook_shows_a_table_with_everything_escaped():
    table = detail(compare([make_result("<script>A & B", 0.5)]))
    shown = table._repr_html_()
    assert shown == to_html(table)
    assert "<td>&lt;script&gt;A &amp; B</td>" in shown or "<b>&lt;script&gt;A &amp; B</b>" in shown
    assert "<script>" not in shown
