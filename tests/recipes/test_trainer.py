"""Hugging Face's Trainer with a small BERT of random weights."""

from pathlib import Path

import pytest

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import torch

from bgd import BGD
from recipes import posterior, run

pytestmark = pytest.mark.filterwarnings("ignore")  # the packages' own


def bert() -> torch.nn.Module:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=16, num_labels=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config)


def texts(count: int = 32) -> list[dict[str, torch.Tensor]]:
    ids = torch.randint(1, 50, (count, 6), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(6, dtype=torch.long)
    return [{"input_ids": row, "attention_mask": mask, "labels": (row[0] > 25).long()} for row in ids]


def test_the_trainer_takes_the_steps_of_a_plain_loop(tmp_path: Path) -> None:
    model = bert()
    quiet = {
        "num_train_epochs": 2, "per_device_train_batch_size": 4, "report_to": [], "save_strategy": "no",
        "disable_tqdm": True, "logging_strategy": "no", "use_cpu": True, "seed": 3,
    }  # fmt: skip
    batch = {key: value[None] for key, value in texts(1)[0].items() if key != "labels"}
    seen: list[torch.Tensor] = []
    handle = model.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(kwargs["input_ids"]) if module.training else None, with_kwargs=True
    )
    names = run("trainer", model=model, folder=str(tmp_path), texts=texts(), quiet=quiet, batch=batch)
    handle.remove()
    optimizer = names["optimizer"]
    assert optimizer.steps == 8
    assert names["p"].probs.shape == (1, 2)

    again = bert()
    other = BGD(again.parameters(), seed=optimizer.seed)
    for first, second in zip(seen[::2], seen[1::2], strict=True):
        other.zero_grad()
        for ids in (first, second):
            loss = again(input_ids=ids, attention_mask=torch.ones_like(ids), labels=(ids[:, 0] > 25).long()).loss
            loss.backward()  # the Trainer leaves the division to models that can divide, and BERT's head cannot
        torch.nn.utils.clip_grad_norm_(again.parameters(), 1.0)
        other.step()
    torch.testing.assert_close(posterior(optimizer), posterior(other), rtol=1e-3, atol=1e-4)
