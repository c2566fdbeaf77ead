import re
from dataclasses import replace

import pytest

from bgd.report.figures.catalog import draw_plots
from bgd.report.markdown import render_overview, render_section_page
from bgd.report.section import Section
from bgd.report.summary import compare
from bgd.report.write import write_markdown


def page_of(*comparisons):
    """The page of comparisons without their figures."""
    sections = [Section(comparison, (), {}) for comparison in comparisons]
    return render_section_page(sections, [{}] * len(sections), "RESULTS.md")


@pytest.fixture
def text(comparison):
    section = Section(comparison, draw_plots(comparison), {})
    return render_section_page(
        [section], [{plot.name: f"figures/{plot.name}.png" for plot in section.plots}], "../R.md"
    )


def test_content_line_by_line(text):
    assert text.startswith(
        "# Continuous permuted digits\n\n[All results](../R.md)\n\n**Over 2 to 3 seeds, BGD (92.00 ± 1.00 %)"
    )
    assert "| BGD | **92.00 ± 1.00** | 92.00 ± 1.00 | +0.00 (SE 0.66) | ✓ agrees | 3 (2019–2021) | 12 s |" in text
    assert "| SGD | 81.00 ± 1.41 | 85.00 ± 0.50 | -4.00 (SE 1.01) | ↓ lower | 2 of 3 (2019, 2020) | 4.0 s |" in text
    for needed in ("Paper: Figure 3.", "Seeds 2019–2021.", "bgd run made --preset paper", "std\\_init 0.06", "A note."):
        assert needed in text


def test_overview_line_by_line(comparison):
    text = render_overview([Section(comparison, (), {})], "bgd report runs --markdown R.md", "Results", "docs/results")
    assert "7 runs" not in text
    assert "6 runs of 1 experiment: of 3 values that the paper prints, 1 agree as stated, 0 with a named" in text
    assert "| Continuous permuted digits | Figure 3 | full, fewer seeds | 3 | 1 | – | 1 | – | 1 |" in text
    assert "- SGD, accuracy: paper 85.00 ± 0.50; ours 81.00 ± 1.41 (2 seeds) (made)" in text
    assert "- **[Continuous permuted digits](docs/results/made.md)**: Over 2 to 3 seeds, BGD (92.00" in text
    assert len(text.splitlines()) < 40


def test_files_of_a_repository(comparison, tmp_path):
    file, pages = tmp_path / "RESULTS.md", tmp_path / "docs" / "results"
    write_markdown([comparison], file, pages, command="bgd report")
    page = pages / "made.md"
    assert "](docs/results/made.md)" in file.read_text()
    assert "[All results](../../RESULTS.md)" in page.read_text()
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", page.read_text())
    (central,) = re.findall(r"!\[.*?\]\(docs/results/(.*?)\)", file.read_text())
    pictures.append(central)
    drawn = {path.relative_to(pages).as_posix() for path in pages.rglob("*.??g")}
    assert drawn == set(pictures)
    assert len(drawn) == 9
    write_markdown([compare(comparison.runs[:2])], file, pages, command="bgd report")  # less is drawn
    drawn = {path.relative_to(pages).as_posix() for path in pages.rglob("*.??g")}
    assert drawn - {central} == set(re.findall(r"!\[.*?\]\((.*?)\)", page.read_text()))


def test_missing_runs_are_listed(text):
    assert "**Not complete.**" in text
    assert "- Adam, accuracy, seed 2019: failed ValueError: lr" in text


def test_folds_are_closed_and_pictures_have_alternative_texts(text):
    assert text.count("<details>") == text.count("</details>") >= 3
    for alt, path in re.findall(r"!\[(.*?)\]\((.*?)\)", text):
        assert len(alt) > 30
        assert path.startswith("figures/")


def test_comparisons_of_one_page_have_distinct_headings(results, experiment):
    plain = compare(results, experiment, preset="paper")
    changed = compare(results, experiment, preset="paper", overrides=["stream.epochs=1"])
    text = page_of(plain, changed, changed)
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Continuous permuted digits (paper)",
        "## Continuous permuted digits (paper, stream.epochs=1), 1",
        "## Continuous permuted digits (paper, stream.epochs=1), 2",
    ]


def test_a_warning_of_many_seeds_is_one_line(results, experiment):
    steps = iter((10, 7, 12))
    runs = [
        run.model_copy(update={"warnings": [f"collapsed by step {next(steps)}: std 1.8e+20"] if i < 3 else []})
        for i, run in enumerate(results)
    ]
    text = page_of(compare(runs, experiment))
    (line,) = [line for line in text.splitlines() if "collapsed" in line]
    assert line == "- BGD, accuracy, 3 runs (seeds 2019–2021), in the first: collapsed by step 10: std 1.8e+20"


def test_one_warning_has_its_seed(results, experiment):
    runs = [results[1].model_copy(update={"warnings": ["collapsed", "skipped 50 steps"]}), *results[2:]]
    text = page_of(compare(runs, experiment))
    assert "\n- BGD, accuracy, seed 2020: collapsed\n- BGD, accuracy, seed 2020: skipped 50 steps\n" in text


def test_many_commands_are_folded_and_all_are_listed(results, experiment):
    def made_by(command: str, run):
        return run.model_copy(update={"machine": run.machine.model_copy(update={"command": command})})

    few = [made_by("bgd run one", run) for run in results]
    text = page_of(compare(few, experiment))
    assert "\n\n```\nbgd run one\n```\n\n" in text
    many = [made_by(f"bgd run {i}", run) for i, run in enumerate(results)]
    text = page_of(compare(many, experiment))
    commands = "\n".join(f"bgd run {i}" for i in range(len(results)))
    assert f"<summary>The {len(results)} commands that made it</summary>\n\n```\n{commands}\n```\n\n</details>" in text


def test_text_of_users_runs_nothing(results, experiment):
    """Sites made from Markdown pass on HTML as it is."""
    attack = "<script>x</script><img src=x onerror=x>[a](JavaScript:x)[b]: javascript:x\n```\n<svg onload=x>"
    machine = results[0].machine.model_copy(update={"command": attack, "platform": attack})
    run = results[0].model_copy(update={"machine": machine, "warnings": [attack], "data_note": attack})
    declared = experiment.model_copy(update={"title": attack, "shows": attack, "source": attack, "notes": (attack,)})
    made = replace(compare([run], declared, preset=attack, overrides=[attack]), remarks=attack)
    text = page_of(made, made) + render_overview([Section(made, (), {})], attack, attack, "pages")
    outside = re.sub(r"^(`{3,})\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)  # code is shown as it is
    assert len(outside) < len(text)
    allowed = re.sub(r"</?(details|summary)>", "", outside)
    assert not re.findall(r"<[A-Za-z/!]", allowed)
    assert not re.findall(r"(?<!\\)\]\(\s*javascript:", allowed, re.IGNORECASE)  # an escaped bracket is no link
