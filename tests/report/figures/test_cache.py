"""Figures are drawn once, and nothing that a cache can do makes a report wrong."""

import os
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from made_runs import make_result

from bgd.report.figures import cache
from bgd.report.figures.catalog import draw_plots
from bgd.report.figures.lines import draw_lines, make_series
from bgd.report.figures.style import Look
from bgd.report.figures.types import Plot
from bgd.report.summary import compare


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    return tmp_path / "figures"


@pytest.fixture
def plots():
    return draw_plots(compare([make_result("BGD", 0.9), make_result("SGD", 0.8)]))[:2]


def fail(*arguments, **keywords):
    raise AssertionError("drawn again")


def test_what_was_drawn_is_not_drawn_again(folder, plots, monkeypatch):
    first = cache.render(plots, "svg")
    monkeypatch.setattr(cache, "_draw", fail)
    assert cache.render(plots, "svg") == first
    assert [content[:5] for content in first] == [b"<?xml"] * 2
    with pytest.raises(AssertionError):
        cache.render(plots, "png")


@pytest.mark.parametrize("damage", [lambda old: old[:-9], lambda old: b"", lambda old: old.replace(b"BGD", b"BAD")])
def test_a_damaged_file_is_drawn_again(folder, plots, damage):
    whole = cache.render(plots, "svg")
    for path in folder.iterdir():
        path.write_bytes(damage(path.read_bytes()))
    assert cache.render(plots, "svg") == whole


def test_without_a_cache_all_is_drawn(plots, monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setattr(cache, "cache_folder", lambda: file)
    assert len(cache.render(plots, "svg")) == 2


def test_what_is_not_used_is_removed(folder, plots):
    folder.mkdir()
    old, new = folder / "old", folder / "new"
    for path, days in ((old, cache.KEPT_DAYS + 1), (new, 1)):
        path.write_text("")
        os.utime(path, (time.time() - 86_400 * days,) * 2)
    cache.render(plots, "svg")
    assert new.exists()
    assert not old.exists()


def test_processes_draw_the_same(folder, plots, monkeypatch):
    alone = cache.render(plots, "svg")
    for path in folder.iterdir():
        path.unlink()
    monkeypatch.setattr(cache, "WORTH_PROCESSES", 2)
    assert cache.render(plots, "svg", processes=2) == alone


def test_where_no_process_can_be_started_this_one_draws(folder, plots, monkeypatch):
    def refuse(*arguments):
        raise OSError("no semaphores")

    monkeypatch.setattr(cache, "WORTH_PROCESSES", 2)
    monkeypatch.setattr(cache, "ProcessPoolExecutor", refuse)
    assert len(cache.render(plots, "svg", processes=2)) == 2


def test_every_argument_decides():
    """One bit of one value, one colour, one title: another figure."""

    def plot(y=0.9, colour="#c04a00", title="t", **more):
        looks = {"BGD": Look(colour, "-", "o")}
        return Plot(
            "n", "t", "c", "a", partial(draw_lines, {"BGD": make_series([1, 2], [[y, 1]])}, looks, title=title, **more)
        )

    made = [
        plot(),
        plot(y=np.nextafter(0.9, 1)),
        plot(colour="#000000"),
        plot(title="u"),
        plot(xlabel="x"),
        replace(plot(), draw=partial(print)),
    ]
    digests = [cache.digest(one, "svg") for one in made] + [cache.digest(plot(), "png")]
    assert len(set(digests)) == len(digests)
    assert cache.digest(plot(), "svg") == digests[0]
    assert cache.digest(replace(plot(), caption="other"), "svg") == digests[0]  # not drawn
