"""A training loop of any shape with the one-pass estimator: nothing is dropped, counted twice, or silently wrong."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bgd import BGD

X, Y = torch.randn(8, 6, generator=torch.Generator().manual_seed(1)), torch.arange(8) % 3


def mlp() -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


def loss_of(model: nn.Module, rows: slice = slice(None)) -> Tensor:
    return F.cross_entropy(model(X[rows]), Y[rows])


def posterior(optimizer: BGD) -> Tensor:
    """All means and stds in a row."""
    return torch.cat([optimizer.state[p][key].flatten() for p in optimizer._params() for key in ("mean", "std")])


def after(loop: Callable[[nn.Module, BGD], Any], steps: int = 2, **settings: Any) -> Tensor:
    """The posterior after some steps of a loop."""
    model = mlp()
    optimizer = BGD(model.parameters(), **({"seed": 0, "std_max": None, "max_move": None} | settings))
    for _ in range(steps):
        loop(model, optimizer)
    return posterior(optimizer)


def plain(model: nn.Module, optimizer: BGD) -> None:
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()


# --- the order of calls


def forward_first(model: nn.Module, optimizer: BGD) -> None:
    loss = loss_of(model)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def zero_last(model: nn.Module, optimizer: BGD) -> None:
    loss_of(model).backward()
    optimizer.step()
    optimizer.zero_grad()


def model_zero(model: nn.Module, optimizer: BGD) -> None:
    model.zero_grad()
    loss_of(model).backward()
    optimizer.step()


def zeros_not_none(model: nn.Module, optimizer: BGD) -> None:
    optimizer.zero_grad(set_to_none=False)
    loss_of(model).backward()
    optimizer.step()


def models_zeros_not_none(model: nn.Module, optimizer: BGD) -> None:
    model.zero_grad(set_to_none=False)
    loss_of(model).backward()
    optimizer.step()


def closure_that_clears(model: nn.Module, optimizer: BGD) -> None:
    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    optimizer.step(closure)


def closure_that_does_not(model: nn.Module, optimizer: BGD) -> None:
    def closure() -> Tensor:
        loss = loss_of(model)
        loss.backward()
        return loss

    optimizer.step(closure)


def validation_between(model: nn.Module, optimizer: BGD) -> None:
    optimizer.zero_grad()
    with torch.no_grad():
        model(torch.randn(50, 6))
    loss = loss_of(model)
    model.eval()(torch.randn(50, 6)).sum()
    model.train()
    loss.backward()
    with torch.no_grad():
        model(torch.randn(50, 6))
    optimizer.step()


def forward_without_backward(model: nn.Module, optimizer: BGD) -> None:
    """Before and after: a pass that backward does not go through has no part in the step, however large it is."""
    optimizer.zero_grad()
    model(torch.randn(50, 6))
    loss_of(model).backward()
    model(torch.randn(50, 6))
    optimizer.step()


def forward_that_fails(model: nn.Module, optimizer: BGD) -> None:
    optimizer.zero_grad()
    with pytest.raises(RuntimeError, match="shapes"):
        model(torch.randn(8, 5))
    loss_of(model).backward()
    optimizer.step()


def backward_that_fails(model: nn.Module, optimizer: BGD) -> None:
    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise ValueError("no backward")

    with pytest.raises(ValueError, match="no backward"):
        model[2](Failing.apply(model[0](X))).sum().backward()
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()


def thrown_away(model: nn.Module, optimizer: BGD) -> None:
    loss_of(model, slice(0, 5)).mul(7).backward()
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()


def two_losses(model: nn.Module, optimizer: BGD) -> None:
    optimizer.zero_grad()
    loss = loss_of(model)
    (0.25 * loss).backward(retain_graph=True)
    (0.75 * loss).backward()
    optimizer.step()


def siamese(model: nn.Module, optimizer: BGD) -> None:
    """One example meets one network, in both calls."""
    optimizer.zero_grad()
    ((loss_of(model) + loss_of(model)) / 2).backward()
    optimizer.step()


SAME = [forward_first, zero_last, model_zero, zeros_not_none, models_zeros_not_none, closure_that_clears]
SAME += [closure_that_does_not, validation_between, forward_without_backward, forward_that_fails, backward_that_fails]
SAME += [thrown_away, two_losses, siamese]


@pytest.mark.parametrize("loop", SAME, ids=lambda loop: loop.__name__)
def test_is_the_step_of_a_plain_loop(loop: Callable[..., None]) -> None:
    torch.testing.assert_close(after(loop), after(plain), rtol=1e-5, atol=1e-5)


def test_loaded_weights_are_not_lost_after_a_stray_forward_pass() -> None:
    model, other = mlp(), nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = BGD(model.parameters(), seed=0)
    model(X)
    model.load_state_dict(other.state_dict())
    twin = BGD(other.parameters(), seed=0)
    plain(model, optimizer)
    plain(other, twin)
    assert torch.equal(posterior(optimizer), posterior(twin))


def test_gradients_of_the_last_step_are_not_added_to() -> None:
    model = mlp()
    optimizer = BGD(model.parameters())
    loss_of(model).backward()
    optimizer.step()
    loss_of(model).backward()
    with pytest.raises(RuntimeError, match=r"call optimizer.zero_grad\(\) before"):
        optimizer.step()
    plain(model, optimizer)


# --- accumulation


def accumulate(model: nn.Module, optimizer: BGD, parts: int = 4) -> None:
    optimizer.zero_grad()
    for i in range(parts):
        (loss_of(model, slice(2 * i, 2 * i + 2)) / parts).backward()
    optimizer.step()


def test_no_micro_batch_is_dropped() -> None:
    """The step's E[g] is the sum over all examples, and E[g eps] the sum of the micro-batches' own."""
    found: list[Any] = []
    model = mlp()
    optimizer = BGD(model.parameters(), seed=0)
    optimizer.zero_grad()
    own = []
    for i in range(4):
        (loss_of(model, slice(2 * i, 2 * i + 2)) / 4).backward()
        own.append([(z * z.grad).detach().clone() for z in optimizer._passes._noise])
    update = optimizer._update
    optimizer._update = lambda step, estimate: found.append(estimate()) or update(step, lambda: found[0])
    gradients = [p.grad.clone() for p in model.parameters()]
    optimizer.step()
    assert found[0].examples == 8
    assert found[0].scale == 8
    assert all(map(torch.equal, found[0].e_g, gradients))
    for total, *parts in zip(found[0].e_g_eps, *own, strict=True):
        torch.testing.assert_close(total, sum(parts))


def accumulate_for_a_closure(model: nn.Module, optimizer: BGD) -> None:
    """Three micro-batches before step(), and the last inside its closure, after which zero_grad comes too late."""
    optimizer.zero_grad()
    for i in range(3):
        (loss_of(model, slice(2 * i, 2 * i + 2)) / 4).backward()

    def closure() -> Tensor:
        loss = loss_of(model, slice(6, 8)) / 4
        loss.backward()
        return loss

    optimizer.step(closure)


def test_accumulation_goes_on_in_a_closure() -> None:
    torch.testing.assert_close(after(accumulate_for_a_closure), after(accumulate))


def test_accumulation_before_several_calls_of_a_closure_is_refused() -> None:
    with pytest.raises(RuntimeError, match="accumulate with mc_samples=1"):
        after(accumulate_for_a_closure, mc_samples=2)


def test_implicit_equations_need_a_closure() -> None:
    with pytest.raises(RuntimeError, match="implicit_iterations"):
        after(plain, implicit_iterations=3)
    assert after(closure_that_clears, implicit_iterations=3).isfinite().all()


# --- unscaling and clipping


def scaled_by(factor: float) -> Callable[..., None]:
    """What a step is whose loss is multiplied by a factor."""

    def loop(model: nn.Module, optimizer: BGD) -> None:
        optimizer.zero_grad()
        (factor * loss_of(model)).backward()
        optimizer.step()

    return loop


def test_a_grad_scaler_leaves_no_trace() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def loop(model: nn.Module, optimizer: BGD) -> None:
        optimizer.zero_grad()
        scaler.scale(loss_of(model)).backward()
        scaler.step(optimizer)
        scaler.update()

    torch.testing.assert_close(after(loop), after(plain), rtol=1e-5, atol=1e-5)


def test_a_grad_scaler_skips_overflow() -> None:
    model = mlp()
    optimizer = BGD(model.parameters(), seed=0)
    scaler = torch.amp.GradScaler("cpu", init_scale=3e38)
    optimizer.zero_grad()
    scaler.scale(100 * loss_of(model)).backward()
    before = posterior(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(posterior(optimizer), before)
    assert scaler.get_scale() < 3e38
    plain(model, optimizer)
    assert optimizer.steps == 1


def test_a_grad_scaler_with_accumulation_and_clipping() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def clipped(model: nn.Module, optimizer: BGD) -> None:
        optimizer.zero_grad()
        for i in range(4):
            scaler.scale(loss_of(model, slice(2 * i, 2 * i + 2)) / 4).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()

    def by_hand(model: nn.Module, optimizer: BGD) -> None:
        probe = copy.deepcopy((model, optimizer))
        probe[1].zero_grad()
        for i in range(4):
            (loss_of(probe[0], slice(2 * i, 2 * i + 2)) / 4).backward()
        norm = nn.utils.get_total_norm([p.grad for p in probe[0].parameters()])
        optimizer.zero_grad()
        for i in range(4):
            (0.1 / norm * loss_of(model, slice(2 * i, 2 * i + 2)) / 4).backward()
        optimizer.step()

    torch.testing.assert_close(after(clipped), after(by_hand), rtol=1e-4, atol=1e-6)


def test_clipping_by_norm_is_a_smaller_loss() -> None:
    factors: list[float] = []

    def clipped(model: nn.Module, optimizer: BGD) -> None:
        optimizer.zero_grad()
        loss_of(model).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        factors.append(float(0.2 / norm))
        optimizer.step()

    found = after(clipped, steps=1)
    torch.testing.assert_close(found, after(scaled_by(factors[0]), steps=1), rtol=1e-4, atol=1e-6)


def test_clipping_by_value_touches_single_elements_of_e_g_only() -> None:
    def clipped(model: nn.Module, optimizer: BGD) -> None:
        optimizer.zero_grad()
        loss_of(model).backward()
        limit = 0.999 * max(float(p.grad.abs().max()) for p in model.parameters())
        nn.utils.clip_grad_value_(model.parameters(), limit)
        optimizer.step()

    found, expected = after(clipped, steps=1), after(plain, steps=1)
    assert int((found != expected).sum()) == 1


def test_a_term_added_to_the_gradients_leaves_e_g_eps_alone() -> None:
    def decayed(model: nn.Module, optimizer: BGD) -> None:
        optimizer.zero_grad()
        loss_of(model).backward()
        for p in model.parameters():
            p.grad.add_(p.detach(), alpha=1e-4)
        optimizer.step()

    torch.testing.assert_close(after(decayed, steps=1), after(plain, steps=1), rtol=5e-3, atol=1e-3)


def test_a_schedule_moves_the_step_size() -> None:
    model = mlp()
    optimizer = BGD(model.parameters(), seed=0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.0)
    plain(model, optimizer)
    schedule.step()
    before = [p.clone() for p in model.parameters()]
    plain(model, optimizer)
    assert all(map(torch.equal, before, model.parameters()))


# --- parts of a model


def test_optimizers_of_two_parts_of_one_model() -> None:
    model = mlp()
    first, second = BGD(model[0].parameters(), seed=0), BGD(model[2].parameters(), seed=1)
    for _ in range(2):
        first.zero_grad()
        second.zero_grad()
        loss_of(model).backward()
        for optimizer in (first, second):
            optimizer._passes._end_pass()
            assert optimizer._passes.examples == 8
            assert all(e.any() for e in optimizer._passes._e_g_eps)
        first.step()
        second.step()
    assert (first.steps, second.steps) == (2, 2)
    assert torch.overrides._get_current_function_mode_stack() == []


def test_alternating_optimizers_as_in_a_gan() -> None:
    """Each step counts what its own backward passes went through, and no mode stays behind."""
    torch.manual_seed(0)
    generator, critic = nn.Linear(4, 6), nn.Linear(6, 1)
    g_optimizer, c_optimizer = BGD(generator.parameters(), seed=1), BGD(critic.parameters(), seed=2)
    real, latent = torch.randn(8, 6), torch.randn(16, 4)
    for _ in range(3):
        c_optimizer.zero_grad()
        (critic(generator(latent).detach()).mean() - critic(real).mean()).backward()
        c_optimizer.step()
        g_optimizer.zero_grad()
        (-critic(generator(latent)).mean()).backward()
        g_optimizer.step()
    assert (g_optimizer.steps, c_optimizer.steps) == (3, 3)
    assert torch.overrides._get_current_function_mode_stack() == []


# --- inputs


class Reads(nn.Module):
    """Takes its inputs in one of many forms."""

    def __init__(self, read: Callable[..., Tensor]) -> None:
        super().__init__()
        self.layer, self.read = nn.Linear(6, 3), read

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.layer(self.read(*args, **kwargs))


@pytest.mark.parametrize(
    ("read", "args", "kwargs"),
    [
        (lambda batch: batch["x"], ({"x": X, "mask": torch.ones(3)},), {}),
        (lambda pair: pair[0], ((X, torch.ones(3)),), {}),
        (lambda scale, x: scale * x, (1.0, X), {}),
        (lambda *, x: x, (), {"x": X}),
    ],
)
def test_examples_are_counted_in_dicts_tuples_and_keywords(read: Any, args: Any, kwargs: Any) -> None:
    model = Reads(read)
    optimizer = BGD(model.parameters(), seed=0)
    F.cross_entropy(model(*args, **kwargs), Y).backward()
    optimizer._passes._end_pass()
    assert optimizer._passes.examples == 8


def test_a_list_of_tensors_is_refused() -> None:
    model = Reads(torch.stack)
    BGD(model.parameters())
    with pytest.raises(RuntimeError, match="list of 8 tensors"):
        model(list(X))


def test_inputs_without_a_tensor_need_a_batch_size() -> None:
    model = Reads(lambda rows: torch.tensor(rows))
    optimizer = BGD(model.parameters(), seed=0)
    before = model.layer.weight.clone()
    F.cross_entropy(model(X.tolist()), Y).backward()
    with pytest.raises(RuntimeError, match="batch_size="):
        optimizer.step()
    optimizer.zero_grad()
    F.cross_entropy(model(X.tolist()), Y).backward()
    optimizer.step(batch_size=8)
    assert not torch.equal(model.layer.weight, before)


def test_packed_sequences_are_counted() -> None:
    model = nn.LSTM(6, 3)
    optimizer = BGD(model.parameters(), seed=0)
    packed = nn.utils.rnn.pack_sequence([torch.randn(n, 6) for n in (5, 4, 2)])
    model(packed)[0].data.sum().backward()
    optimizer._passes._end_pass()
    assert optimizer._passes.examples == 3


class TimeFirst(nn.Module):
    def __init__(self, transpose: bool) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(9, 6), nn.GRU(6, 5), nn.Linear(5, 3)
        self.transpose = transpose

    def forward(self, ids: Tensor) -> Tensor:
        h = self.embedding(ids.T if self.transpose else ids)
        return self.head(self.rnn(h)[0][-1])


def test_a_batch_in_the_second_dimension_is_refused_or_transposed() -> None:
    ids = torch.randint(9, (5, 8))
    model = TimeFirst(transpose=False)
    BGD(model.parameters())
    with pytest.raises(RuntimeError, match="its 8 examples are in the second dimension"):
        model(ids)
    model = TimeFirst(transpose=True)
    optimizer = BGD(model.parameters())
    F.cross_entropy(model(ids.T), Y).backward()
    optimizer.step()


# --- what cannot be perturbed


def test_torchscript_is_refused() -> None:
    scripted = torch.jit.script(mlp())
    for model in (scripted, nn.Sequential(scripted)):
        optimizer = BGD(model.parameters())
        loss_of(model).backward()
        with pytest.raises(RuntimeError, match="TorchScript"):
            optimizer.step()


def test_parameters_that_no_module_perturbs_are_refused() -> None:
    model, scale = mlp(), nn.Parameter(torch.ones(3))
    optimizer = BGD([*model.parameters(), scale])
    F.cross_entropy(model(X) * scale, Y).backward()
    with pytest.raises(RuntimeError, match=r"shape \(3,\) has a gradient, but no module has perturbed it"):
        optimizer.step()


def test_a_part_in_evaluation_mode_is_refused() -> None:
    model = mlp()
    optimizer = BGD(model.parameters())
    model.training = model[2].training = False
    loss_of(model).backward()
    with pytest.raises(RuntimeError, match="in training mode"):
        optimizer.step()


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool | None) -> None:
        super().__init__()
        self.model, self.reentrant = mlp(), reentrant

    def forward(self, x: Tensor) -> Tensor:
        if self.reentrant is None:
            return self.model(x)
        h = checkpoint(self.model[:2], x.clone().requires_grad_(), use_reentrant=self.reentrant)
        return self.model[2](h)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_inside_a_model(reentrant: bool) -> None:
    found = []
    for kind in (None, reentrant):
        model = Checkpointed(kind)
        optimizer = BGD(model.parameters(), seed=0)
        for _ in range(2):
            plain(model, optimizer)
        found.append(posterior(optimizer))
    torch.testing.assert_close(*found)


def test_a_reentrant_checkpoint_outside_of_modules_is_refused() -> None:
    model = mlp()
    BGD(model.parameters())
    h = checkpoint(model[0], X.clone().requires_grad_(), use_reentrant=True)
    with pytest.raises(RuntimeError, match="use_reentrant=False"):
        model[2](h.relu()).sum().backward()
