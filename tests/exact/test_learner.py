"""The learner of a stream of batches: exact at any moment, and predictable to the bit."""

import io

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from bgd.exact import ExactError, statistics
from bgd.exact.features import Fourier, Identity
from bgd.exact.learner import ExactLearner
from bgd.exact.saving import load, save


def problem(n=300, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=generator, dtype=torch.float64)
    noise = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    return x, torch.stack([x.sum(1).sin(), x[:, 0] * x[:, 1]], 1) + 0.1 * noise


def fourier(shape):
    return Fourier(shape, 40, scales=(0.7, 2.0), seed=1).double()


def learner(**settings):
    return ExactLearner(fourier, outputs=2, **{"block": 64, "dtype": torch.float64, **settings})


def feed(model, x, y, size=10):
    return [model.learn(a, b) for a, b in zip(x.split(size), y.split(size), strict=True)]


@pytest.mark.parametrize("size", [1, 7, 64, 300])
def test_at_any_moment_the_solution_is_that_of_all_data(size):
    x, y = problem()
    model = learner()
    for start in range(0, 300, size):
        model.learn(x[start : start + size], y[start : start + size])
        seen = start + len(x[start : start + size])
        if start % (5 * size) == 0:
            solution = model.solution()
            phi = solution.features(x[:seen]).double()
            eye = torch.eye(41, dtype=torch.float64)
            expected = torch.linalg.solve(phi.T @ phi + 0.01 * eye, phi.T @ y[:seen])
            assert_close(solution.posterior.mean, expected, rtol=1e-8, atol=1e-8)


def test_a_discount_is_gamma_to_the_age():
    x, y = problem()
    model = ExactLearner(Identity, outputs=2, discount=0.99, ridge=1.0, block=64, dtype=torch.float64)
    feed(model, x, y)
    solution = model.solution()
    phi = solution.features(x).double()
    weights = 0.99 ** torch.arange(299, -1, -1, dtype=torch.float64)[:, None]
    expected = torch.linalg.solve(phi.T @ (weights * phi) + torch.eye(5, dtype=torch.float64), phi.T @ (weights * y))
    assert_close(solution.posterior.mean, expected, rtol=1e-8, atol=1e-8)


def test_asking_changes_no_bit():
    x, y = problem()
    asked, silent = learner(dtype=torch.float32), learner(dtype=torch.float32)
    for a, b in zip(x.split(10), y.split(10), strict=True):
        asked.learn(a, b)
        silent.learn(a, b)
        asked.solution()
    assert torch.equal(asked.solution().mean(x), silent.solution().mean(x))


@pytest.mark.parametrize("stop", [3, 6, 20])
def test_restored_it_continues_bit_for_bit(stop):
    x, y = problem()
    whole, rest = learner(), learner()
    feed(whole, x[: stop * 10], y[: stop * 10])
    file = io.BytesIO()
    torch.save(whole.state_dict(), file)
    file.seek(0)
    rest.load_state_dict(torch.load(file, weights_only=True))
    blocks = [feed(model, x[stop * 10 :], y[stop * 10 :]) for model in (whole, rest)]
    assert all(a is b is None or (torch.equal(a.mean, b.mean)) for a, b in zip(*blocks, strict=True))
    assert torch.equal(whole.solution().mean(x), rest.solution().mean(x))
    assert torch.equal(whole.solution().variance(x), rest.solution().variance(x))


def test_progress_is_measured_on_examples_not_yet_learnt():
    x, y = problem(3000)
    blocks = [block for block in feed(learner(), x, y) if block]
    errors = torch.stack([(block.mean - block.targets).square().mean() for block in blocks])
    assert len(blocks) > 30
    assert errors.mean() < 0.7 * y.square().mean()  # better than the prior's mean, 0
    assert errors.mean() > 0.01  # the noise that no prediction can remove


def test_the_order_of_classes_does_not_matter_once_features_are_fixed():
    """Trained class by class it is the head that is trained on everything at once."""
    x, y = problem()
    order = y[:, 0].argsort()
    features = fourier((4,)).fit(x)
    sorted_, shuffled = (ExactLearner(lambda _: features, 2, dtype=torch.float64) for _ in range(2))
    feed(sorted_, x[order], y[order])
    feed(shuffled, x, y)
    assert_close(sorted_.solution().mean(x), shuffled.solution().mean(x), rtol=1e-9, atol=1e-9)


def test_outputs_that_appear_later_were_zero_until_then():
    x, y = problem()
    whole, growing = learner(), learner()
    growing.outputs = 1  # the second class comes with the 15th batch
    y[:150, 1] = 0
    feed(whole, x, y)
    feed(growing, x[:150], y[:150, :1])
    feed(growing, x[150:], y[150:])
    assert_close(growing.solution().mean(x), whole.solution().mean(x), rtol=1e-10, atol=1e-10)
    again = learner()
    again.outputs = 1
    again.load_state_dict(growing.state_dict())
    again.learn(x, y)


@pytest.mark.parametrize("stop", [3, 20])
def test_a_saved_file_continues_bit_for_bit(stop, tmp_path):
    x, y = problem()
    whole, rest = learner(dtype=torch.float32), learner(dtype=torch.float32)
    feed(whole, x[: stop * 10], y[: stop * 10])
    save(whole, tmp_path / "learner.npz")
    load(rest, tmp_path / "learner.npz")
    for model in (whole, rest):
        feed(model, x[stop * 10 :], y[stop * 10 :])
    assert torch.equal(whole.solution().mean(x), rest.solution().mean(x))
    assert torch.equal(whole.solution().variance(x), rest.solution().variance(x))


def test_a_file_that_is_none_changes_nothing(tmp_path):
    x, y = problem()
    model = learner()
    feed(model, x, y)
    before = model.solution().mean(x)
    save(model, path := tmp_path / "learner.npz")
    content = path.read_bytes()
    (tmp_path / "text").write_text("nothing")
    other = ExactLearner(Identity, outputs=2, block=64)
    feed(other, x.float(), y.float())
    save(other, tmp_path / "other")
    with np.load(path) as file:
        header = str(file["header"]).replace('"earlier"', '"later"')
        np.savez(tmp_path / "renamed.npz", **{**file, "header": np.array(header)})
    (tmp_path / "half").write_bytes(content[: len(content) // 2])
    np.savez(tmp_path / "pickle.npz", header=np.array({"a": 1}, dtype=object))
    for name in ("text", "half", "pickle.npz", "missing", "other", "renamed.npz"):
        with pytest.raises(ExactError, match="holds no such learner"):
            load(model, tmp_path / name)
        assert torch.equal(model.solution().mean(x), before)


def test_bad_input_is_refused_and_nothing_learnt():
    x, y = problem()
    model = learner()
    feed(model, x, y)
    before = model.solution().mean(x)
    with pytest.raises(ExactError, match="contains NaN or infinity"):
        model.learn(torch.full((2, 4), torch.nan), y[:2])
    with pytest.raises(ExactError, match=r"targets of shape \(3, 2\) for 2 inputs: \(2, 2\) are needed"):
        model.learn(x[:2], y[:3])
    assert torch.equal(model.solution().mean(x), before)
    for settings in ({"ridge": 0.0}, {"discount": 1.5}):
        with pytest.raises(ExactError, match=r"=(0\.0|1\.5)"):
            learner(**settings)
    assert model.everything().sums.examples == 300
    assert statistics.solve(model.everything().sums).examples == 300
