import re

import pytest

from bgd.report.figures.catalog import draw_plots
from bgd.report.markdown import render_markdown
from bgd.report.section import Section
from bgd.report.summary import compare


@pytest.fixture
def text(comparison):
    section = Section(comparison, draw_plots(comparison))
    pictures = {(0, plot.name): f"figures/{plot.name}.png" for plot in section.plots}
    return render_markdown([section], "bgd report runs --markdown RESULTS.md", pictures, "Results")


def test_content_line_by_line(text):
    assert "| [Continuous permuted digits](#continuous-permuted-digits) | paper | 6 of 8 | 1 of 2 |" in text
    assert "\n## Continuous permuted digits\n" in text
    assert "| BGD | **92.00 ± 1.00** | 92.00 ± 1.00 | +0.00 (SE 0.66) | ✓ agrees | 3 (2019–2021) | 12 s |" in text
    assert "| SGD | 81.00 ± 1.41 | 85.00 ± 0.50 | -4.00 (SE 1.01) | ↓ lower | 2 of 3 (2019, 2020) | 4.0 s |" in text
    for needed in ("Paper: Figure 3.", "Seeds 2019–2021.", "bgd run made --preset paper", "std\\_init 0.06", "A note."):
        assert needed in text


def test_missing_runs_are_listed(text):
    assert "**Not complete.**" in text
    assert "- Adam, accuracy, seed 2019: failed ValueError: lr" in text


def test_folds_are_closed_and_pictures_have_alternative_texts(text):
    assert text.count("<details>") == text.count("</details>") >= 3
    for alt, path in re.findall(r"!\[(.*?)\]\((.*?)\)", text):
        assert len(alt) > 30
        assert path.startswith("figures/")


def test_comparisons_of_one_title_are_linked_by_their_preset(comparison):
    section = Section(comparison, [])
    text = render_markdown([section, section], "bgd report", {}, "Results")
    for number in (1, 2):
        assert f"(#continuous-permuted-digits-paper-{number}) | paper" in text
        assert f"\n## Continuous permuted digits (paper), {number}\n" in text


def test_a_warning_of_many_seeds_is_one_line(results, experiment):
    steps = iter((10, 7, 12))
    runs = [
        run.model_copy(update={"warnings": [f"collapsed by step {next(steps)}: std 1.8e+20"] if i < 3 else []})
        for i, run in enumerate(results)
    ]
    text = render_markdown([Section(compare(runs, experiment), [])], "bgd report", {}, "Results")
    (line,) = [line for line in text.splitlines() if "collapsed" in line]
    assert line == "- BGD, accuracy, 3 runs (seeds 2019–2021), in the first: collapsed by step 10: std 1.8e+20"


def test_one_warning_has_its_seed(results, experiment):
    runs = [results[1].model_copy(update={"warnings": ["collapsed", "skipped 50 steps"]}), *results[2:]]
    text = render_markdown([Section(compare(runs, experiment), [])], "bgd report", {}, "Results")
    assert "\n- BGD, accuracy, seed 2020: collapsed\n- BGD, accuracy, seed 2020: skipped 50 steps\n" in text


def test_many_commands_are_folded_and_all_are_listed(results, experiment):
    def made_by(command: str, run):
        return run.model_copy(update={"machine": run.machine.model_copy(update={"command": command})})

    few = [made_by("bgd run one", run) for run in results]
    text = render_markdown([Section(compare(few, experiment), [])], "bgd report", {}, "Results")
    assert "\n\n```\nbgd run one\n```\n\n" in text
    many = [made_by(f"bgd run {i}", run) for i, run in enumerate(results)]
    text = render_markdown([Section(compare(many, experiment), [])], "bgd report", {}, "Results")
    commands = "\n".join(f"bgd run {i}" for i in range(len(results)))
    assert f"<summary>The {len(results)} commands that made it</summary>\n\n```\n{commands}\n```\n\n</details>" in text


def test_comparisons_of_one_experiment_have_distinct_headings(results, experiment):
    plain = compare(results, experiment, preset="paper")
    changed = compare(results, experiment, preset="paper", overrides=("stream.epochs=1",))
    text = render_markdown([Section(plain, []), Section(changed, [])], "bgd report", {}, "Results")
    assert "## Continuous permuted digits (paper)\n" in text
    assert "## Continuous permuted digits (paper, stream.epochs=1)\n" in text
    assert "(#continuous-permuted-digits-paper-streamepochs1)" in text
