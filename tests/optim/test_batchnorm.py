"""Batch normalisation: the running statistics move once per step, by the average over the sampled networks."""

import copy
import gc

import frozen
import pytest
import torch
from shared_bgd import shared_bgd
from torch import nn

from bgd import BGD
from bgd.optim.modules import find_models


def make(momentum: float | None = 0.1) -> tuple[nn.Sequential, torch.Tensor]:
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5, momentum=momentum), nn.Linear(5, 2))
    return model, torch.randn(16, 4)


def closure_of(model: nn.Module, x: torch.Tensor):
    def closure() -> torch.Tensor:
        loss = model(x).square().sum()
        loss.backward()
        return loss

    return closure


@pytest.mark.parametrize("momentum", [0.1, None])
def test_statistics_move_once_by_the_average_over_the_samples(momentum: float | None) -> None:
    model, x = make(momentum)
    optimizer = shared_bgd(model.parameters(), std_init=0.3, mc_samples=5, seed=2)
    closure_of(model, x)()  # the statistics are not at their initial values
    before = copy.deepcopy(model[1])
    means = []
    for k in range(5):  # what each sampled network hands to the layer
        weight = model[0].weight + 0.3 * optimizer_noise(optimizer, model, k)[0]
        bias = model[0].bias + 0.3 * optimizer_noise(optimizer, model, k)[1]
        means.append((x @ weight.T + bias).mean(0))
    optimizer.step(closure_of(model, x))
    factor = momentum if momentum is not None else 1 / 2
    expected = (1 - factor) * before.running_mean + factor * torch.stack(means).mean(0)
    torch.testing.assert_close(model[1].running_mean, expected.detach())
    assert int(model[1].num_batches_tracked) == int(before.num_batches_tracked) + 1


def optimizer_noise(optimizer: BGD, model: nn.Module, k: int) -> list[torch.Tensor]:
    return [e[0] for e in optimizer._training_noise(list(model.parameters()), [k])]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_evaluation_mode_leaves_the_statistics_alone(dtype: torch.dtype) -> None:
    model, x = make()
    model, x = model.to(dtype), x.to(dtype)
    model(x)
    model.eval()
    optimizer = shared_bgd(model.parameters(), mc_samples=10)  # the sum of ten equal numbers is not ten times each
    before = copy.deepcopy(model[1].state_dict())
    optimizer.step(closure_of(model, x))
    for key in ("running_mean", "running_var", "num_batches_tracked"):
        assert torch.equal(model[1].state_dict()[key], before[key])


@pytest.mark.parametrize("nonfinite", ["raise", "skip"])
def test_a_bad_batch_does_not_reach_the_statistics(nonfinite: str) -> None:
    model, x = make()
    optimizer = shared_bgd(model.parameters(), nonfinite=nonfinite)  # type: ignore[arg-type]
    before = model[1].running_mean.clone()
    x[0, 0] = float("nan")
    if nonfinite == "raise":
        with pytest.raises(FloatingPointError):
            optimizer.step(closure_of(model, x))
    else:
        optimizer.step(closure_of(model, x))
    assert torch.equal(model[1].running_mean, before)


def test_layers_without_parameters_are_found_too() -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5, affine=False))
    optimizer = shared_bgd(model.parameters(), mc_samples=4)
    optimizer.step(closure_of(model, torch.randn(8, 4)))
    assert int(model[1].num_batches_tracked) == 1


def test_layers_of_a_group_added_later_are_found() -> None:
    first, second = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    optimizer = shared_bgd(first.parameters(), mc_samples=4)
    optimizer.step(closure_of(first, torch.randn(8, 4)))
    optimizer.add_param_group({"params": second.parameters()})
    optimizer.step(closure_of(nn.Sequential(first, second), torch.randn(8, 4)))
    assert int(second[1].num_batches_tracked) == 1


def test_another_models_layers_are_left_alone() -> None:
    model, _ = make()
    other, _ = make()
    assert find_models(model.parameters()) == [model]
    wrapper = nn.ModuleDict({"inner": model})
    assert find_models([model[2].bias]) == [wrapper]
    assert other not in find_models(model.parameters())


def test_a_copied_optimizer_finds_its_own_models_layers() -> None:
    model, x = make()
    optimizer = shared_bgd(model.parameters(), mc_samples=3)
    optimizer.step(closure_of(model, x))
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    twin_optimizer.step(closure_of(twin, x))
    assert int(twin[1].num_batches_tracked) == 2
    assert int(model[1].num_batches_tracked) == 1


def test_a_model_that_changes_its_type_still_moves_once_a_step() -> None:
    model, x = make()
    optimizer = shared_bgd(model.parameters(), std_init=1e-6, mc_samples=10)
    optimizer.step(closure_of(model, x))
    model.double()  # its buffers are other tensors from now on
    before = model[1].running_mean.clone()
    optimizer.step(closure_of(model, x.double()))
    batch = model[0](x.double()).mean(0)  # the posterior has hardly moved
    torch.testing.assert_close(model[1].running_mean, 0.9 * before + 0.1 * batch, rtol=1e-3, atol=1e-4)


def test_a_frozen_garbage_collector_is_warned_of(monkeypatch) -> None:
    model, x = make()
    optimizer = shared_bgd(model.parameters())
    gc.freeze()
    monkeypatch.setattr(gc, "get_freeze_count", frozen.count)
    try:
        with pytest.warns(RuntimeWarning, match=r"gc\.freeze"):
            optimizer.step(closure_of(model, x))
    finally:
        gc.unfreeze()
        frozen.freeze()  # as before
