"""Kinds of modules under the one-pass estimator: the same expectations as networks that the batch shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from estimates import BATCH, agree
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from bgd import BGD
from bgd.nets import LeNet

Y = torch.arange(BATCH) % 3


def random(*shape: int) -> Tensor:
    return torch.randn(BATCH, *shape, generator=torch.Generator().manual_seed(sum(shape)))


def tokens(count: int) -> Tensor:
    return torch.randint(7, (BATCH, count), generator=torch.Generator().manual_seed(count))


class Model(nn.Module):
    """Parts by name, and a function of them and the input."""

    def __init__(self, run: Callable[[Any, Tensor], Tensor], **parts: nn.Module | nn.Parameter) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.run = run

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


def weight(*shape: int) -> nn.Parameter:
    return nn.Parameter(0.5 * torch.randn(*shape))


def attention(m: Any, x: Tensor) -> Tensor:
    q, k, v = m.qkv(x).chunk(3, -1)
    return m.head(F.scaled_dot_product_attention(q, k, v).mean(1))


def time_first(m: Any, x: Tensor) -> Tensor:
    """As many time steps as examples: only the module says which is which."""
    return m.head(m.layer(m.embedding(x).transpose(0, 1))[-1])


CASES: dict[str, tuple[Callable[[], nn.Module], Tensor]] = {
    "conv3d in groups": (
        lambda: nn.Sequential(nn.Conv3d(2, 4, 2, groups=2), nn.Tanh(), nn.Flatten(), nn.Linear(32, 3)),
        random(2, 3, 3, 3),
    ),
    "transposed 1d in groups, strided": (
        lambda: nn.Sequential(
            nn.ConvTranspose1d(2, 4, 3, stride=2, groups=2), nn.Tanh(), nn.Flatten(), nn.Linear(36, 3)
        ),
        random(2, 4),
    ),
    "transposed 3d": (
        lambda: nn.Sequential(nn.ConvTranspose3d(2, 2, 2), nn.Tanh(), nn.Flatten(), nn.Linear(54, 3)),
        random(2, 2, 2, 2),
    ),
    "lstm": (
        lambda: Model(
            lambda m, x: m.head(m.rnn(x)[0][:, -1]), rnn=nn.LSTM(4, 5, batch_first=True), head=nn.Linear(5, 3)
        ),
        random(5, 4),
    ),
    "gru over time first": (
        lambda: Model(
            lambda m, x: m.head(m.rnn(m.embedding(x).transpose(0, 1))[0]).mean(0),
            embedding=nn.Embedding(7, 4),
            rnn=nn.GRU(4, 5),
            head=nn.Linear(5, 3),
        ),
        tokens(BATCH),
    ),
    "transformer over time first": (
        lambda: Model(
            time_first,
            embedding=nn.Embedding(7, 4),
            layer=nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0),
            head=nn.Linear(4, 3),
        ),
        tokens(BATCH),
    ),
    "embedding bag": (
        lambda: Model(lambda m, x: m.head(m.bag(x)), bag=nn.EmbeddingBag(7, 4), head=nn.Linear(4, 3)),
        tokens(5),
    ),
    "bilinear": (lambda: Model(lambda m, x: m.layer(x, x.tanh()), layer=nn.Bilinear(4, 4, 3)), random(4)),
    "matrix products": (
        lambda: Model(
            lambda m, x: torch.einsum("ni,ij->nj", torch.tanh(x @ m.a), m.b).matmul(m.c.T) + torch.addmm(m.d, x, m.e),
            a=weight(4, 5),
            b=weight(5, 4),
            c=weight(3, 4),
            d=weight(3),
            e=weight(4, 3),
        ),
        random(4),
    ),
    "weight norm": (
        lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(4, 6)), nn.Tanh(), nn.Linear(6, 3)),
        random(4),
    ),
    "one layer twice": (
        lambda: Model(lambda m, x: m.head(m.layer(m.layer(x).tanh())), layer=nn.Linear(4, 4), head=nn.Linear(4, 3)),
        random(4),
    ),
    "one weight in two ways": (
        lambda: Model(
            lambda m, x: m.head(m.layer(x).tanh() @ m.layer.weight), layer=nn.Linear(4, 4), head=nn.Linear(4, 3)
        ),
        random(4),
    ),
    "dropout": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.3), nn.Tanh(), nn.Linear(6, 3)),
        random(4),
    ),
    "layer and group norms": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Tanh(), nn.GroupNorm(2, 6), nn.Linear(6, 3)),
        random(4),
    ),
    "attention": (lambda: Model(attention, qkv=nn.Linear(4, 12), head=nn.Linear(4, 3)), random(5, 4)),
    "data parallel": (lambda: nn.DataParallel(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))), random(4)),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_in_mean_with_networks_shared_by_the_batch(name: str) -> None:
    build, x = CASES[name]
    agree(model := build(), lambda net: F.cross_entropy(net(x), Y, reduction="sum"), passes=250)
    step_changes_every_std(model, lambda: F.cross_entropy(model(x), Y))


def step_changes_every_std(model: nn.Module, loss: Callable[[], Tensor], but: str = "(none)") -> None:
    """The optimizer finds all that the mode can perturb."""
    optimizer = BGD(model.parameters(), seed=0, std_max=None, std_init=0.02)
    for _ in range(2):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    for name, p in model.named_parameters():
        assert but in name or (optimizer.state[p]["std"] != optimizer.state[p]["std"].new_tensor(0.02)).any(), name


def test_lenet() -> None:
    model = LeNet((3, 32, 32), outputs=3)
    images = torch.randn(BATCH, 3, 32, 32)
    step_changes_every_std(model, lambda: F.cross_entropy(model(images), Y))


def test_batch_norm() -> None:
    """It couples examples, and noise of their own leaves what they have in common out of E[g eps]: no agreement."""
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3))
    model[0].bias = None  # it has no effect before the norm
    step_changes_every_std(model, lambda: F.cross_entropy(model(random(4)), Y))


def test_spectral_norm() -> None:
    model = nn.Sequential(parametrizations.spectral_norm(nn.Linear(4, 6)), nn.Tanh(), nn.Linear(6, 3))
    step_changes_every_std(model, lambda: F.cross_entropy(model(random(4)), Y))


def test_functional_calls_with_the_model_s_own_parameters() -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    own = dict(model.named_parameters())
    step_changes_every_std(model, lambda: F.cross_entropy(torch.func.functional_call(model, own, random(4)), Y))


def test_functional_calls_with_copies_are_refused() -> None:
    model = nn.Linear(4, 3)
    optimizer = BGD(model.parameters())
    copies = {name: 1.0 * p for name, p in model.named_parameters()}
    F.cross_entropy(torch.func.functional_call(model, copies, random(4)), Y).backward()
    with pytest.raises(RuntimeError, match="perturbed"):
        optimizer.step()


def test_layers_frozen_later_keep_their_posterior() -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    step_changes_every_std(model, lambda: F.cross_entropy(model(random(4)), Y))
    optimizer = BGD(model.parameters())
    model[0].requires_grad_(False)
    before = {key: value.clone() for key, value in optimizer.state[model[0].weight].items()}
    F.cross_entropy(model(random(4)), Y).backward()
    optimizer.step()
    assert all(torch.equal(value, optimizer.state[model[0].weight][key]) for key, value in before.items())


@pytest.mark.filterwarnings("ignore:BGD.s std_init")  # BERT starts with small weights
def test_bert() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12,
        max_position_embeddings=6, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config).train()
    ids = tokens(5)
    agree(model, lambda net: F.cross_entropy(net(input_ids=ids).logits, Y, reduction="sum"), passes=120)
    step_changes_every_std(
        model, lambda: F.cross_entropy(model(input_ids=ids).logits, Y), but="key.bias"
    )  # attention ignores it
