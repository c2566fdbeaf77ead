"""A device that does not exist is reported at once, in one line, and nothing is written."""

import pytest
import torch

from bgd.cli import main

ABSENT = [
    pytest.param("cuda", marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")),
    pytest.param("cuda:7", marks=pytest.mark.skipif(torch.cuda.device_count() > 7, reason="there are many GPUs")),
    pytest.param("mps", marks=pytest.mark.skipif(torch.backends.mps.is_available(), reason="there is one")),
    "meta",
    "abacus",
]


@pytest.mark.parametrize("device", ABSENT)
def test_one_clear_error_before_any_work(device, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "digits", "--preset", "smoke", "--device", device, "--out", str(tmp_path / "runs")])
    out, err = capsys.readouterr()
    assert ended.value.code == 2  # wrong usage: no run has failed
    message = " ".join(err.split())
    assert f"device '{device}' cannot be used" in message
    assert message.endswith("choose another, such as cpu")
    assert len(message) < 400
    assert not out
    assert not (tmp_path / "runs").exists()
