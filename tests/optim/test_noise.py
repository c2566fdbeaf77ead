"""Noise is a pure function of its key, and is normal."""

import pytest
import torch
from scipy import stats

from bgd.optim import noise
from bgd.optim.compilation import CompiledOrEager, can_compile
from bgd.optim.noise import CHUNK, fold, hashed, normal


def draw(kind: noise.NoiseKind, keys: list[int], size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return normal(kind, keys, size, torch.empty(len(keys), size, dtype=dtype))


@pytest.mark.parametrize("kind", noise.KINDS)
def test_a_row_depends_on_its_key_alone(kind: noise.NoiseKind) -> None:
    keys = [fold(1, 2, k) for k in range(4)]
    together = draw(kind, keys, 1001)
    for row, key in zip(together, keys, strict=True):
        assert torch.equal(row, draw(kind, [key], 1001)[0])
    assert len({tuple(row[:3].tolist()) for row in together}) == 4


@pytest.mark.parametrize("size", [0, 1, 5, CHUNK, CHUNK + 1, 2 * CHUNK + 17])
@pytest.mark.parametrize("kind", noise.KINDS)
def test_any_size(kind: noise.NoiseKind, size: int) -> None:
    out = draw(kind, [fold(3)], size)
    assert out.shape == (1, size)
    assert out.isfinite().all()


@pytest.mark.skipif(not can_compile(), reason="no C++ compiler on this machine")
def test_compiled_hash_gives_the_same_numbers_at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [fold(5, k) for k in range(3)]
    for size in (1, 83, 129, 5000):
        compiled = draw("hash", keys, size).clone()
        assert hashed.compile
        monkeypatch.setattr(hashed, "compile", False)
        torch.testing.assert_close(compiled, draw("hash", keys, size), rtol=0, atol=2e-6)
        monkeypatch.undo()


def test_a_failing_compiler_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_function: object) -> object:
        raise RuntimeError("compiler on fire")

    monkeypatch.setattr(torch, "compile", broken)
    double = CompiledOrEager(lambda x: 2 * x)
    double.compile = True
    with pytest.warns(RuntimeWarning, match="compiler on fire"):
        assert double(3) == 6
    assert double(4) == 8


def test_threads_do_not_change_the_numbers() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = draw("torch", [fold(1), fold(2)], 3 * CHUNK + 5)
        torch.set_num_threads(3)
        many = draw("torch", [fold(1), fold(2)], 3 * CHUNK + 5)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one, many)


@pytest.mark.parametrize("kind", noise.KINDS)
def test_global_generator_is_not_touched(kind: noise.NoiseKind) -> None:
    before = torch.get_rng_state()
    draw(kind, [fold(1)], 10_000)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("kind", noise.KINDS)
def test_rows_are_standard_normal_and_independent(kind: noise.NoiseKind) -> None:
    rows = draw(kind, [fold(2019, step, k) for step in range(4) for k in range(4)], 100_000).double()
    flat = rows.flatten()
    assert abs(float(flat.mean())) < 4 / len(flat) ** 0.5
    assert abs(float(flat.var()) - 1) < 4 * (2 / len(flat)) ** 0.5
    assert abs(float((flat**4).mean()) - 3) < 4 * (96 / len(flat)) ** 0.5
    assert stats.kstest(rows[0].numpy(), "norm").pvalue > 1e-3
    assert stats.kstest(rows[-1].numpy(), "norm").pvalue > 1e-3
    correlation = torch.corrcoef(rows) - torch.eye(len(rows))
    assert float(correlation.abs().max()) < 5 / 100_000**0.5
    for lag in (1, 2, 50_000):  # neighbours, and the two halves that Box-Muller makes from one pair
        r = float((rows[:, lag:] * rows[:, :-lag]).mean())
        assert abs(r) < 5 / (len(rows) * (100_000 - lag)) ** 0.5
        squares = float(((rows[:, lag:] ** 2 - 1) * (rows[:, :-lag] ** 2 - 1)).mean())
        assert abs(squares) < 5 * 2 / (len(rows) * (100_000 - lag)) ** 0.5


@pytest.mark.parametrize("kind", noise.KINDS)
def test_float64_noise_has_the_right_type(kind: noise.NoiseKind) -> None:
    assert draw(kind, [fold(1)], 10, torch.float64).dtype == torch.float64


def test_coordinates_do_not_collide() -> None:
    keys = {
        fold(seed, stream, step, k)
        for seed in range(4)
        for stream in range(2)
        for step in range(100)
        for k in range(10)
    }
    assert len(keys) == 4 * 2 * 100 * 10
    assert len({key & 0xFFFFFFFF for key in keys}) > len(keys) - 3  # a CPU generator uses 32 bits of its seed


@pytest.mark.parametrize("kind", noise.KINDS)
def test_no_part_of_a_long_row_comes_twice(kind: noise.NoiseKind) -> None:
    first, second, third = draw(kind, [fold(1)], 3 * CHUNK)[0].double().view(3, CHUNK)
    for a, b in ((first, second), (second, third), (first, third)):
        assert abs(float((a * b).mean())) < 5 / CHUNK**0.5
