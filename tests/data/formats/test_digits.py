"""The data set that needs no source."""

import torch

import bgd.data


def test_digits_need_no_source(monkeypatch):
    monkeypatch.setenv("BGD_OFFLINE", "1")
    digits = bgd.data.load()
    assert digits.train.images.dtype == torch.uint8
    assert (int(digits.train.images.min()), int(digits.train.images.max())) == (0, 255)
    assert len(digits.train) + len(digits.test) == 1797
    assert torch.unique(torch.cat([digits.train.images, digits.test.images])).numel() == 17
    assert torch.equal(digits.train.images, bgd.data.load("digits").train.images)
