"""The optimizer in a training loop: what a step does, and what it refuses."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from problems import Problem, posterior
from shared_bgd import PAPER, shared_bgd
from torch import nn

from bgd import BGD, predict


def close(a: list[torch.Tensor], b: list[torch.Tensor], tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


# --- the scale of the loss


def test_sum_and_mean_give_the_same_update() -> None:
    results = []
    for reduction in ("sum", "mean"):
        torch.manual_seed(1)
        problem = Problem()
        optimizer = shared_bgd(problem.model.parameters(), std_init=0.1, reduction=reduction, seed=3, **PAPER)
        for _ in range(5):
            optimizer.step(problem.closure(optimizer, reduction), batch_size=20 if reduction == "mean" else None)
        results.append(posterior(optimizer))
    close(*results)


def test_a_batch_size_beside_a_summed_loss_is_a_mean_that_was_forgotten(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters())
    with pytest.raises(ValueError, match=r'batch_size goes with .*reduction="mean"'):
        optimizer.step(problem.closure(optimizer, "mean"), batch_size=20)
    assert optimizer.steps == 0


def test_a_batch_split_in_two_gives_the_same_update() -> None:
    results = []
    for cuts in ([slice(None)], [slice(0, 7), slice(7, 20)]):
        torch.manual_seed(1)
        problem = Problem()
        optimizer = shared_bgd(problem.model.parameters(), std_init=0.1, seed=3, mc_samples=4, std_max=None)
        for _ in range(5):

            def closure(problem=problem, cuts=cuts):
                losses = [problem.loss(rows=rows) for rows in cuts]
                for loss in losses:
                    loss.backward()
                return sum(losses)

            optimizer.step(closure)
        results.append(posterior(optimizer))
    close(*results)


def test_mean_needs_the_batch_size(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), reduction="mean")
    with pytest.raises(ValueError, match="batch_size"):
        optimizer.step(problem.closure(optimizer, "mean"))
    with pytest.raises(ValueError, match="got 0"):
        optimizer.step(problem.closure(optimizer, "mean"), batch_size=0)


def test_a_closure_without_zero_grad_gives_the_same_update() -> None:
    results = []
    for forget in (False, True):
        torch.manual_seed(1)
        problem = Problem()
        optimizer = shared_bgd(problem.model.parameters(), seed=3, **PAPER)

        def forgetful(problem: Problem = problem) -> torch.Tensor:
            loss = problem.loss()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(forgetful if forget else problem.closure(optimizer))
        results.append(posterior(optimizer))
    close(*results)


# --- between steps the weights are the mean


def test_weights_are_the_mean_after_a_step(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.3, **PAPER)
    optimizer.step(problem.closure(optimizer))
    for p in problem.model.parameters():
        assert torch.equal(p, optimizer.state[p]["mean"])


def test_weights_written_between_steps_are_the_new_mean(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), std_init=1e-6)
    optimizer.step(problem.closure(optimizer))
    with torch.no_grad():
        for p in problem.model.parameters():
            p.fill_(0.25)
    optimizer.step(problem.closure(optimizer))
    for p in problem.model.parameters():
        torch.testing.assert_close(p.detach(), torch.full_like(p, 0.25), rtol=0, atol=1e-6)


@pytest.mark.parametrize("where", ["closure", "accumulate"])
def test_an_exception_inside_a_step_leaves_everything_as_it_was(problem: Problem, where: str) -> None:
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.3, **PAPER)
    optimizer.step(problem.closure(optimizer))
    before, weights = posterior(optimizer), problem.weights()
    calls = 0

    def failing() -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 3 and where == "closure":
            raise KeyboardInterrupt
        loss = problem.loss()
        if not (calls == 3 and where == "accumulate"):
            loss.backward()
        return loss

    with pytest.raises((KeyboardInterrupt, RuntimeError)):
        optimizer.step(failing)
    assert all(map(torch.equal, posterior(optimizer), before))
    assert all(map(torch.equal, problem.weights(), weights))
    assert optimizer.steps == 1
    optimizer.step(problem.closure(optimizer))


# --- sampled()


def test_sampled_restores_the_mean_also_on_an_exception(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.3)
    before = problem.weights()

    def crash() -> None:
        with optimizer.sampled():
            assert not torch.equal(problem.weights()[0], before[0])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        crash()
    assert all(map(torch.equal, problem.weights(), before))


def test_samples_have_the_moments_of_the_posterior() -> None:
    p = nn.Parameter(torch.linspace(-1, 1, 50))
    optimizer = shared_bgd([p], std_init=0.3, seed=1)
    draws = []
    for _ in range(400):
        with optimizer.sampled():
            draws.append(p.detach().clone())
    stacked = torch.stack(draws)
    torch.testing.assert_close(stacked.mean(0), p.detach(), rtol=0, atol=5 * 0.3 / 20)
    assert float(stacked.std(0).mean()) == pytest.approx(0.3, rel=0.03)


def test_sample_weights_are_the_networks_that_sampled_shows(problem: Problem) -> None:
    shown = []
    first = shared_bgd(problem.model.parameters(), std_init=0.3, seed=5, **PAPER)
    for _ in range(3):
        with first.sampled():
            shown.append(problem.weights())
    second = shared_bgd(problem.model.parameters(), std_init=0.3, seed=5, **PAPER)
    drawn = second.sample_weights(3)
    for i, p in enumerate(problem.model.parameters()):
        assert torch.equal(torch.stack([s[i] for s in shown]), drawn[p])


def test_sampling_the_posterior_does_not_change_training() -> None:
    results = []
    for look in (False, True):
        torch.manual_seed(1)
        problem = Problem()
        optimizer = shared_bgd(problem.model.parameters(), seed=3, **PAPER)
        for _ in range(4):
            optimizer.step(problem.closure(optimizer))
            if look:
                with optimizer.sampled():
                    problem.loss()
        results.append(posterior(optimizer))
    assert all(map(torch.equal, *results))


# --- misuse


def test_a_step_without_a_closure_names_the_estimator_that_needs_none(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), mc_samples=2)
    problem.loss().backward()
    with pytest.raises(RuntimeError, match=r'without a closure needs estimator="per_example"'):
        optimizer.step()


def test_stale_gradients_do_not_count_as_a_backward_pass(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), mc_samples=2)
    problem.loss().backward()
    with pytest.raises(RuntimeError, match="call backward"):
        optimizer.step(problem.loss)
    assert optimizer.steps == 0


@pytest.mark.parametrize("what", ["step", "state_dict", "add_param_group", "sampled"])
def test_nothing_else_is_done_in_the_middle_of_a_step(problem: Problem, what: str) -> None:
    optimizer = shared_bgd(problem.model.parameters(), mc_samples=2)
    before = problem.weights()

    def closure() -> torch.Tensor:
        if what == "step":
            optimizer.step(closure)
        elif what == "state_dict":
            optimizer.state_dict()
        elif what == "add_param_group":
            optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))]})
        else:
            with optimizer.sampled():
                pass
        return problem.loss()

    with pytest.raises(RuntimeError, match="in the middle of a step"):
        optimizer.step(closure)
    assert all(map(torch.equal, problem.weights(), before))
    assert len(optimizer.param_groups) == 1
    optimizer.step(problem.closure(optimizer))


def test_nothing_else_is_done_inside_sampled(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), mc_samples=2)
    with optimizer.sampled():
        with pytest.raises(RuntimeError, match="inside sampled"):
            optimizer.step(problem.closure(optimizer))
        with pytest.raises(RuntimeError, match="inside sampled"):
            optimizer.state_dict()
        with pytest.raises(RuntimeError, match="inside sampled"), optimizer.sampled():
            pass


def test_a_closure_without_a_loss_is_refused(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters())
    with pytest.raises(RuntimeError, match="must return the loss"):
        optimizer.step(lambda: None)  # type: ignore[arg-type,return-value]


# --- parameters that do not take part


def test_parameters_without_a_gradient_do_not_move_by_a_bit() -> None:
    used, unused = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer = shared_bgd([*used.parameters(), *unused.parameters()], std_init=0.1)
    before = [t.clone() for p in unused.parameters() for t in (p, optimizer.state[p]["std"])]

    def closure() -> torch.Tensor:
        loss = used(torch.ones(4, 3)).square().sum()
        loss.backward()
        return loss

    moved = used.weight.detach().clone()
    for _ in range(3):
        optimizer.step(closure)
    after = [t for p in unused.parameters() for t in (p, optimizer.state[p]["std"])]
    assert all(map(torch.equal, before, after))
    assert not torch.equal(moved, used.weight)


def test_frozen_parameters_are_neither_sampled_nor_moved(problem: Problem) -> None:
    frozen = problem.model[0].weight
    frozen.requires_grad_(False)
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.3, **PAPER)
    before = frozen.clone()
    seen = []
    closure = problem.closure(optimizer)

    def watching() -> torch.Tensor:
        seen.append(torch.equal(frozen, before))
        return closure()

    optimizer.step(watching)
    assert all(seen)
    assert torch.equal(frozen, before)
    frozen.requires_grad_(True)
    optimizer.step(closure)
    assert not torch.equal(frozen, before)


def test_nothing_to_sample_is_an_error() -> None:
    p = nn.Parameter(torch.ones(2), requires_grad=False)
    optimizer = shared_bgd([p])
    with pytest.raises(RuntimeError, match="requires a gradient"):
        optimizer.step(p.sum)


# --- NaN and infinity


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_bad_gradient_raises_before_it_reaches_the_posterior(problem: Problem, value: float) -> None:
    optimizer = shared_bgd(problem.model.named_parameters(), seed=1)
    optimizer.step(problem.closure(optimizer))
    before = [*posterior(optimizer), *problem.weights()]
    problem.x[3, 2] = value
    with pytest.raises(FloatingPointError, match=r"'0\.weight'.*step 1.*unchanged.*skip"):
        optimizer.step(problem.closure(optimizer))
    assert all(map(torch.equal, [*posterior(optimizer), *problem.weights()], before))
    assert optimizer.steps == 1


@pytest.mark.parametrize("estimator", ["shared", "per_example"])
def test_a_bad_batch_can_be_skipped(problem: Problem, estimator: str) -> None:
    settings = {**PAPER, "estimator": estimator, "mc_samples": 2}
    optimizer = BGD(problem.model.parameters(), seed=1, reduction="sum", nonfinite="skip", **settings)
    before = posterior(optimizer)
    good = problem.x.clone()
    problem.x[3, 2] = float("nan")
    assert optimizer.step(problem.closure(optimizer)).isnan()  # the loss that it met
    assert all(map(torch.equal, posterior(optimizer), before))
    assert optimizer.skipped_steps == 1
    problem.x = good
    optimizer.step(problem.closure(optimizer))
    assert optimizer.skipped_steps == 1
    assert not torch.equal(posterior(optimizer)[0], before[0])


# --- the implicit equations


def test_implicit_iterations_find_the_fixed_point_of_a_quadratic() -> None:
    p = nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    h = torch.tensor([4.0, 0.5], dtype=torch.float64)
    optimizer = shared_bgd(
        [p],
        std_init=1.0,
        mc_samples=200,
        antithetic=True,
        seed=1,
        implicit_iterations=60,
        implicit_damping=0.3,
        implicit_tolerance=1e-10,
    )

    def closure() -> torch.Tensor:
        loss = (0.5 * h * p**2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    # Antithetic noise makes E[g] exact; E[g eps] = h std mean(eps^2) has the noise of 100 pairs.
    torch.testing.assert_close(p.detach(), torch.tensor([1.0, -2.0], dtype=torch.float64) / (1 + h), rtol=1e-6, atol=0)
    torch.testing.assert_close(optimizer.state[p]["std"] ** -2, 1 + h, rtol=0.3, atol=0)
    assert optimizer.steps == 1


def test_one_implicit_iteration_is_the_papers_algorithm_and_more_differ() -> None:
    results = []
    for iterations in (1, 2):
        torch.manual_seed(1)
        problem = Problem()
        optimizer = shared_bgd(
            problem.model.parameters(), std_init=0.1, seed=3, implicit_iterations=iterations, **PAPER
        )
        optimizer.step(problem.closure(optimizer))
        results.append(posterior(optimizer)[0])
    assert not torch.allclose(*results, rtol=1e-9)


def test_a_failed_implicit_step_restores_the_prior(problem: Problem) -> None:
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.1, mc_samples=2, implicit_iterations=3)
    before = [*posterior(optimizer), *problem.weights()]
    calls = 0
    closure = problem.closure(optimizer)

    def failing() -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise ZeroDivisionError
        return closure()

    with pytest.raises(ZeroDivisionError):
        optimizer.step(failing)
    assert all(map(torch.equal, [*posterior(optimizer), *problem.weights()], before))


def test_dropout_has_its_own_mask_in_every_sampled_network() -> None:
    model = nn.Sequential(nn.Linear(4, 50), nn.Dropout(0.5))
    optimizer = shared_bgd(model.parameters(), std_init=1e-6, mc_samples=4)
    masks = []

    def closure() -> torch.Tensor:
        out = model(torch.ones(2, 4))
        masks.append((out == 0).detach())
        loss = out.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert len({tuple(m.flatten().tolist()) for m in masks}) == 4


def test_autocast_around_a_step_sees_every_sampled_network() -> None:
    """Autocast keeps casts of the weights, and would not notice that others have been written in their place."""
    problem = Problem(torch.float32)
    posteriors, losses = [], []
    for around in (True, False):
        model = Problem(torch.float32).model
        model.load_state_dict(problem.model.state_dict())
        optimizer = shared_bgd(model.parameters(), std_init=0.5, mc_samples=4, seed=3)

        def closure(model=model, optimizer=optimizer) -> torch.Tensor:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(model(problem.x).float(), problem.y, reduction="sum")
            loss.backward()
            losses.append(loss.item())
            return loss

        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=around):
            optimizer.step(closure)
            shown = []
            for _ in range(3):
                with optimizer.sampled(), torch.no_grad():
                    shown.append(model(problem.x))
        assert not torch.equal(shown[0], shown[1])
        assert not torch.equal(shown[1], shown[2])
        posteriors.append(posterior(optimizer))
    assert len(set(losses)) == 4
    assert losses[:4] == losses[4:]
    assert all(map(torch.equal, *posteriors))


def test_it_learns() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(256, 2, generator=generator)
    y = (x.prod(1) > 0).long()  # not linearly separable
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = shared_bgd(model.parameters(), std_init=0.1, mc_samples=10, seed=0)

    def closure() -> torch.Tensor:
        loss = F.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        return loss

    for _ in range(150):
        optimizer.step(closure)
    assert float((model(x).argmax(1) == y).float().mean()) > 0.95


def test_a_model_in_place_of_its_parameters_is_named() -> None:
    with pytest.raises(TypeError, match=r"got the model Linear: pass model\.parameters\(\)"):
        shared_bgd(torch.nn.Linear(2, 2))  # type: ignore[arg-type]


# --- frozen weights, and a look at the posterior


def test_a_network_that_is_frozen_after_learning_keeps_its_posterior(problem: Problem) -> None:
    """As one does before it is deployed."""
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.3, seed=3)
    optimizer.step(problem.closure(optimizer))
    drawn = optimizer.sample_weights(2)
    before = predict(problem.model, optimizer, problem.x, samples=20).mutual_information.mean()
    problem.model.requires_grad_(False)
    assert optimizer.sample_weights(2).keys() == drawn.keys()
    after = predict(problem.model, optimizer, problem.x, samples=20).mutual_information.mean()
    assert float(after) == pytest.approx(float(before), rel=0.5)
    mean = problem.model(problem.x)
    with optimizer.sampled():
        assert not torch.equal(problem.model(problem.x), mean)
    assert torch.equal(problem.model(problem.x), mean)


def test_what_was_frozen_from_the_start_is_certain(problem: Problem) -> None:
    problem.model[0].requires_grad_(False)
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.3, seed=3)
    optimizer.step(problem.closure(optimizer))
    assert set(optimizer.sample_weights(1)) == set(problem.model[2].parameters())
    problem.model.requires_grad_(False)
    assert set(optimizer.sample_weights(1)) == set(problem.model[2].parameters())


def test_a_network_that_never_learned_is_predicted_by_its_mean(problem: Problem) -> None:
    problem.model.requires_grad_(False)
    optimizer = shared_bgd(problem.model.parameters(), std_init=0.3)
    prediction = predict(problem.model, optimizer, problem.x, samples=3)
    torch.testing.assert_close(prediction.probs, problem.model(problem.x).softmax(-1))


# --- odd parameters and settings


@pytest.mark.parametrize("bound", [{"std_max": 0.1}, {"std_min": 0.1}, {"std_max": "init"}])
def test_a_number_is_read_in_the_weights_own_precision(bound: dict[str, Any]) -> None:
    p = nn.Parameter(torch.zeros(3, dtype=torch.float64))
    optimizer = shared_bgd([p], std_init=0.1, **bound)
    assert optimizer.state[p]["std"].tolist() == [0.1] * 3

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (0 * p).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert optimizer.state[p]["std"].tolist() == [0.1] * 3  # a gradient of 0 changes no bit


def test_a_bad_batch_is_skipped_beside_an_empty_parameter() -> None:
    full, empty = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(0))
    optimizer = shared_bgd([full, empty], nonfinite="skip")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (full * float("nan")).sum() + empty.sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert optimizer.skipped_steps == 1
    assert full.tolist() == [1, 1]


def test_a_learning_rate_of_one_element_is_a_number() -> None:
    moved = []
    for lr in (0.5, torch.tensor([0.5])):
        vector, scalar = nn.Parameter(torch.ones(3)), nn.Parameter(torch.tensor(2.0))
        optimizer = shared_bgd([vector, scalar], std_init=0.1, lr=lr, seed=1)

        def closure(vector: Any = vector, scalar: Any = scalar, optimizer: BGD = optimizer) -> torch.Tensor:
            optimizer.zero_grad()
            loss = (vector * scalar).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        moved.append([vector.detach(), scalar.detach()])
    close(*moved)


def test_a_closure_may_return_a_whole_number() -> None:
    p = nn.Parameter(torch.ones(2))
    optimizer = shared_bgd([p])

    def closure() -> int:
        optimizer.zero_grad()
        p.sum().backward()
        return 3

    assert float(optimizer.step(closure)) == 3
    assert optimizer.steps == 1
