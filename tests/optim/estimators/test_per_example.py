"""One pass with noise of its own for every example: unbiased, in a plain loop, whatever the network is made of."""

import copy
import io
import warnings

import pytest
import torch
import torch.nn.functional as F
from estimates import BATCH, agree, sample_expectations
from shared_bgd import shared_bgd
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bgd import BGD


def make(model: nn.Module, **settings) -> BGD:
    defaults = {"std_init": 0.1, "seed": 0, "estimator": "per_example", "reduction": "sum", "std_max": None}
    return shared_bgd(model.parameters(), **(defaults | settings))


class SmallTransformer(nn.Module):
    """Embedding, a free parameter, attention, norms, and an output layer that is tied to the embedding."""

    def __init__(self, batch_first: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 8)
        self.position = nn.Parameter(0.1 * torch.randn(4, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=batch_first)
        self.head = nn.Linear(8, 7, bias=False)
        self.head.weight = self.embedding.weight
        self.batch_first = batch_first

    def forward(self, ids: Tensor) -> Tensor:
        h = self.embedding(ids) + self.position
        h = self.layer(h if self.batch_first else h.transpose(0, 1))
        return self.head(h.mean(1 if self.batch_first else 0))


def convnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, groups=2), nn.Tanh(), nn.ConvTranspose2d(4, 3, 2, stride=2), nn.Flatten(), nn.Linear(192, 3)
    )


X, Y = torch.randn(BATCH, 6, generator=torch.Generator().manual_seed(1)), torch.arange(BATCH) % 3
IMAGES = torch.randn(BATCH, 2, 6, 6, generator=torch.Generator().manual_seed(2))
IDS = torch.randint(7, (BATCH, 4), generator=torch.Generator().manual_seed(3))
CASES = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3)), X, Y),
    "convolutions": (convnet, IMAGES, Y),
    "transformer": (SmallTransformer, IDS, torch.arange(BATCH) % 7),
    "time first": (lambda: SmallTransformer(batch_first=False), IDS, torch.arange(BATCH) % 7),
    "conv1d, tokens": (
        lambda: nn.Sequential(nn.Conv1d(2, 3, 2), nn.Flatten(), nn.Linear(105, 3)),
        IMAGES.flatten(2),
        Y,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_in_mean_with_networks_shared_by_the_batch(name: str) -> None:
    build, x, y = CASES[name]
    model = build()

    def loss(net: nn.Module) -> Tensor:
        return F.cross_entropy(net(x), y, reduction="sum")

    agree(model, loss, passes=400)


def test_expectations_of_a_linear_model_and_a_quadratic_loss_are_exact() -> None:
    """L = sum_n (w x_n - y_n)^2 / 2: E[g] = sum_n (m x_n - y_n) x_n and E[g_i eps_i] = std sum_n x_ni^2."""
    model, target = nn.Linear(6, 1, bias=False), torch.randn(BATCH, 1)

    def loss(net: nn.Module) -> Tensor:
        return (net(X) - target).square().sum() / 2

    (g, g_var), (g_eps, g_eps_var) = sample_expectations(model, loss, 3000, 0.3, shared=False)
    exact = ((model(X) - target).T @ X).flatten().double()
    assert ((g - exact).abs() < 4 * g_var.sqrt()).all()
    assert ((g_eps - 0.3 * X.square().sum(0)).abs() < 4 * g_eps_var.sqrt()).all()


def train(model: nn.Module, optimizer: BGD, steps: int, start: int = 0) -> None:
    for i in range(start, start + steps):
        x = torch.randn(BATCH, 6, generator=torch.Generator().manual_seed(100 + i))
        optimizer.zero_grad()
        F.cross_entropy(model(x), (x[:, 0] > 0).long(), reduction="sum").backward()
        optimizer.step()


def mlp() -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_learns_in_a_plain_loop() -> None:
    model = mlp()
    train(model, make(model), 150)
    x = torch.randn(500, 6)
    assert (model.eval()(x).argmax(1) == (x[:, 0] > 0).long()).float().mean() > 0.9


def test_one_step_is_the_update_from_its_own_expectations() -> None:
    model = mlp()
    optimizer = make(model)
    before, std = [p.detach().clone() for p in model.parameters()], 0.1
    optimizer.zero_grad()
    F.cross_entropy(model(X), Y, reduction="sum").backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    optimizer.step()
    for p, old, g in zip(model.parameters(), before, gradients, strict=True):
        torch.testing.assert_close(p.detach(), old - std**2 * g)
        assert torch.equal(p.grad, g)  # gradients stay as the user knows them


def test_a_mean_over_the_batch_gives_the_update_of_the_sum() -> None:
    results = []
    for reduction in ("sum", "mean"):
        model = mlp()
        optimizer = make(model, reduction=reduction)
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(X), Y, reduction=reduction).backward()
            optimizer.step()
        results.append(weights(model))
    torch.testing.assert_close(*results)


def test_training_passes_are_perturbed_and_evaluation_is_not() -> None:
    model = mlp()
    clean = model(X)
    optimizer = make(model)
    assert not torch.equal(model(X), clean)
    assert torch.equal(model.eval()(X), clean)
    with torch.no_grad():
        assert torch.equal(model.train()(X), clean)
    assert torch.equal(weights(model), optimizer.state_dict()["state"][0]["mean"].new_tensor(weights(model).tolist()))


def test_every_example_has_noise_of_its_own() -> None:
    model = nn.Linear(6, 50)
    make(model)
    same = model(X[:1].expand(BATCH, 6))
    assert len(same.unique(dim=0)) == BATCH


def test_a_forward_pass_without_backward_shares_its_noise_with_the_next() -> None:
    """A layer that is called twice before backward must meet the same network for the same example."""
    model = mlp()
    make(model)
    assert torch.equal(model(X), model(X))


def test_passes_of_one_step_add_up_to_a_larger_batch() -> None:
    model = mlp()
    optimizer = make(model, reduction="mean")
    before = [p.detach().clone() for p in model.parameters()]
    optimizer.zero_grad()
    for part in (slice(0, 4), slice(4, 8)):
        (F.cross_entropy(model(X[part]), Y[part]) / 2).backward()  # as with gradient accumulation of any optimizer
    gradients = [p.grad.clone() for p in model.parameters()]
    optimizer.step()
    for p, old, g in zip(model.parameters(), before, gradients, strict=True):
        torch.testing.assert_close(p.detach(), old - 0.1**2 * BATCH * g)


def test_each_pass_of_a_step_has_noise_of_its_own() -> None:
    model = mlp()
    optimizer = make(model)
    outputs = []
    for _ in range(2):
        out = model(X)
        out.sum().backward()
        outputs.append(out.detach())
    assert not torch.equal(*outputs)
    optimizer.step()


def test_a_closure_runs_several_passes_and_averages_them() -> None:
    model = mlp()
    optimizer = make(model, mc_samples=3)
    before, seen = weights(model), []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(X), Y, reduction="sum")
        loss.backward()
        seen.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        return loss

    loss = optimizer.step(closure)
    assert len(seen) == 3
    assert not torch.equal(seen[0], seen[1])
    torch.testing.assert_close(weights(model), before - 0.1**2 * torch.stack(seen).mean(0))
    assert float(loss) > 0


def test_resumed_equals_uninterrupted_bit_for_bit() -> None:
    model = mlp()
    optimizer = make(model)
    train(model, optimizer, 6)
    other = mlp()
    first = make(other)
    train(other, first, 3)
    saved = io.BytesIO()
    torch.save(first.state_dict(), saved)
    saved.seek(0)
    resumed = mlp()
    second = make(resumed, seed=9)
    second.load_state_dict(torch.load(saved, weights_only=True))
    train(resumed, second, 3, start=3)
    assert torch.equal(weights(model), weights(resumed))


def test_copies_of_model_and_optimizer_are_independent() -> None:
    model = mlp()
    optimizer = make(model)
    train(model, optimizer, 2)
    copied, its = copy.deepcopy((model, optimizer))
    train(model, optimizer, 2, start=2)
    train(copied, its, 2, start=2)
    assert torch.equal(weights(model), weights(copied))


def test_checkpointed_activations_meet_the_same_sample() -> None:
    results = []
    for recompute in (False, True):
        model = mlp()
        optimizer = make(model)
        for _ in range(3):
            optimizer.zero_grad()
            h = model[1](checkpoint(model[0], X, use_reentrant=False) if recompute else model[0](X))
            F.cross_entropy(model[2](h), Y, reduction="sum").backward()
            optimizer.step()
        results.append(weights(model))
    torch.testing.assert_close(*results)


def test_frozen_layers_are_neither_perturbed_nor_updated() -> None:
    model = mlp()
    model[0].requires_grad_(False)
    frozen = model[0].weight.clone()
    clean = model[0](X)
    optimizer = make(model)
    assert torch.equal(model[0](X), clean)
    train(model, optimizer, 3)
    assert torch.equal(model[0].weight, frozen)


def test_gradients_that_were_thrown_away_do_not_count() -> None:
    results = []
    for stray in (False, True):
        model = mlp()
        optimizer = make(model)
        if stray:
            model(-X).sum().backward()
            model.zero_grad()
        F.cross_entropy(model(X), Y, reduction="sum").backward()
        optimizer.step()
        results.append(weights(model))
    assert torch.equal(*results)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_of_other_types(dtype: torch.dtype) -> None:
    model = mlp().to(dtype)
    optimizer = make(model)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(model(X.to(dtype)), Y, reduction="sum").backward()
        optimizer.step()
    assert all(p.dtype == dtype and p.isfinite().all() for p in model.parameters())
    assert optimizer.state[model[0].weight]["std"].dtype == torch.promote_types(dtype, torch.float32)


def test_autocast() -> None:
    model = mlp()
    optimizer = make(model)
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(X), Y, reduction="sum")
        loss.backward()
        optimizer.step()
    assert weights(model).isfinite().all()


def test_batch_normalisation_moves_its_statistics_once_a_pass() -> None:
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
    optimizer = make(model)
    train(model, optimizer, 4)
    assert int(model[1].num_batches_tracked) == 4


def test_several_inputs_and_keywords() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right = nn.Linear(6, 3), nn.Bilinear(6, 6, 3)

        def forward(self, x: Tensor, *, context: dict[str, Tensor]) -> Tensor:
            return self.left(x) + self.right(x, context["other"])

    model = Pair()
    optimizer = make(model)
    F.cross_entropy(model(X, context={"other": -X}), Y, reduction="sum").backward()
    optimizer.step()
    assert all((optimizer.state[p]["std"] != 0.1).any() for p in model.parameters())


def test_a_step_without_a_perturbed_pass_is_refused() -> None:
    model = mlp().eval()
    optimizer = make(model)
    F.cross_entropy(model(X), Y).backward()
    with pytest.raises(RuntimeError, match="without a perturbed backward pass: run the model in training mode"):
        optimizer.step()


def test_the_global_generator_is_not_touched() -> None:
    model = mlp()
    optimizer = make(model)
    state = torch.get_rng_state()
    train(model, optimizer, 2)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_sample_of_the_posterior_is_not_perturbed_again() -> None:
    model = mlp()
    optimizer = make(model)
    with optimizer.sampled():
        expected = F.linear(F.relu(F.linear(X, model[0].weight, model[0].bias)), model[2].weight, model[2].bias)
        assert torch.equal(model(X), expected)


def test_a_model_compiled_before_or_after_the_optimizer_is_made_gives_the_same_update() -> None:
    results = []
    for compiled in ("never", "before", "after"):
        model = mlp()
        run = torch.compile(model, backend="eager") if compiled == "before" else model
        optimizer = make(model)
        run = torch.compile(model, backend="eager") if compiled == "after" else run
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(3):
                optimizer.zero_grad()
                F.cross_entropy(run(X), Y, reduction="sum").backward()
                optimizer.step()
        results.append(weights(model))
    torch.testing.assert_close(results[1], results[0])
    torch.testing.assert_close(results[2], results[0])
