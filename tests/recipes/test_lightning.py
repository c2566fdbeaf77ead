"""Lightning, with automatic optimization."""

from pathlib import Path

import pytest

pytest.importorskip("lightning")

import torch

from recipes import by_hand, grouped, loader, posterior, run

QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}
pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own, of workers, loggers and checkpoints


def test_accumulation_drops_nothing_and_clipping_reaches_both_expectations(tmp_path: Path) -> None:
    quiet = {**QUIET, "default_root_dir": tmp_path, "enable_checkpointing": False}
    names = run("lightning", loader=loader(), quiet=quiet, x=torch.randn(5, 6))
    optimizer = names["trainer"].optimizers[0]
    assert optimizer.steps == 4
    torch.testing.assert_close(posterior(optimizer), by_hand(grouped(4, epochs=2), clip=1.0))
    assert names["p"].probs.shape == (5, 3)


def test_a_checkpoint_holds_the_posterior(tmp_path: Path) -> None:
    quiet = {**QUIET, "default_root_dir": tmp_path, "enable_checkpointing": False}
    names = run("lightning", loader=loader(), quiet=quiet, x=torch.randn(5, 6))
    trainer, lightning = names["trainer"], names["lightning"]
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    resumed = lightning.Trainer(max_epochs=4, accumulate_grad_batches=4, gradient_clip_val=1.0, **quiet)
    resumed.fit(names["Classifier"](), loader(), ckpt_path=tmp_path / "last.ckpt")
    whole = lightning.Trainer(max_epochs=4, accumulate_grad_batches=4, gradient_clip_val=1.0, **quiet)
    whole.fit(names["Classifier"](), loader())
    assert torch.equal(posterior(resumed.optimizers[0]), posterior(whole.optimizers[0]))
