"""The figure of a data set shows samples of the right class in every row."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from bgd.data import DataError, DataSet, Part
from bgd.report.figures.images import draw_grid, save_grid


def plain(classes, channels=3, count=6, dtype=torch.uint8):
    """Return a data set whose images of class k are all of brightness k + 1."""
    labels = torch.arange(classes).repeat(count)
    images = (labels + 1).reshape(-1, 1, 1, 1).expand(-1, channels, 4, 4).to(dtype)
    part = Part(images.contiguous(), labels)
    return DataSet("plain", part, part, tuple(f"class {k}" for k in range(classes)))


@pytest.mark.parametrize("channels", [1, 3])
def test_each_row_holds_samples_of_its_class(channels):
    figure = draw_grid(plain(5, channels), per_class=4)
    assert len(figure.axes) == 20
    for k, axes in enumerate(figure.axes):
        assert np.unique(axes.images[0].get_array()).tolist() == [k // 4 + 1]
    assert [axes.texts[0].get_text() for axes in figure.axes[::4]] == [f"class {k}" for k in range(5)]


def test_many_classes_get_one_titled_sample_each():
    figure = draw_grid(plain(100))
    assert [axes.get_title() for axes in figure.axes] == [f"class {k}" for k in range(100)]
    assert [int(axes.images[0].get_array().max()) for axes in figure.axes] == list(range(1, 101))


def test_class_with_few_samples_leaves_cells_empty():
    figure = draw_grid(plain(2, count=3), per_class=5)
    assert [len(axes.images) for axes in figure.axes] == [1, 1, 1, 0, 0] * 2


def test_samples_depend_on_the_seed_and_not_on_the_global_generator():
    from bgd.data import load

    before = torch.random.get_rng_state()

    def draw(seed):
        buffer = io.BytesIO()
        draw_grid(load("digits"), per_class=2, seed=seed).savefig(buffer, format="png", dpi=30)
        return np.asarray(Image.open(buffer))

    assert np.array_equal(draw(0), draw(0))
    assert not np.array_equal(draw(0), draw(1))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_floats_of_any_range_are_drawn():
    noise = torch.linspace(-3, 5, 2 * 48).reshape(2, 3, 4, 4)
    part = Part(noise, torch.arange(2))
    axes = draw_grid(DataSet("noise", part, part, ("a", "b")), per_class=1).axes
    assert [(int(a.images[0].get_array().min()), int(a.images[0].get_array().max())) for a in axes] == [(0, 255)] * 2


def test_invalid_arguments_are_rejected(tmp_path):
    with pytest.raises(DataError, match=r"no part 'validation'"):
        draw_grid(plain(2), part="validation")
    with pytest.raises(DataError, match=r"at least one sample"):
        draw_grid(plain(2), per_class=0)
    with pytest.raises(DataError, match=r"cannot write the picture .*nowhere/a.png"):
        save_grid(plain(2), tmp_path / "nowhere" / "a.png")
    assert list(tmp_path.glob("*.png")) == []
