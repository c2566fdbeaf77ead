"""Random legal sequences on an optimizer, against a plain model of Algorithm 1 that knows nothing of torch's habits."""

import copy
import io
import math
from typing import Any

import torch
from attacks import attacks
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from shared_bgd import shared_bgd
from torch import Tensor, nn

from bgd import BGD

K = 4


class Plain:
    """One weight tensor with its posterior, as the paper writes it, in float64 or float32."""

    def __init__(self, weight: Tensor, std: float, lr: float, cap: float | None) -> None:
        self.mean, self.std = weight.clone(), torch.full_like(weight, std)
        self.lr, self.cap, self.frozen = lr, cap, False

    def step(self, gradients: list[Tensor], eps: list[Tensor]) -> None:
        if self.frozen:
            return
        e_g = sum(gradients) / len(gradients)
        e_g_eps = sum(g * e for g, e in zip(gradients, eps, strict=True)) / len(gradients)
        self.mean = self.mean - self.lr * self.std**2 * e_g
        x = self.std * e_g_eps / 2
        self.std = torch.tensor(
            [s * math.exp(-math.asinh(float(v))) for s, v in zip(self.std.tolist(), x.tolist(), strict=True)],
            dtype=self.std.dtype,
        )
        if self.cap is not None:
            self.std = self.std.clamp(max=self.cap)


class Sequences(RuleBasedStateMachine):
    """L(theta) = sum_i h_i / 2 (theta_i - goal)^2 over all weights, so that g = h (theta - goal)."""

    @initialize(seed=st.integers(0, 99), cap=st.booleans(), antithetic=st.booleans())
    def start(self, seed: int, cap: bool, antithetic: bool) -> None:
        torch.manual_seed(seed)
        self.params = [nn.Parameter(torch.randn(3, dtype=torch.float64))]
        self.optimizer: BGD = shared_bgd(
            self.params, 0.3, K, seed=seed, antithetic=antithetic, std_max="init" if cap else None
        )
        self.plain = [Plain(self.params[0].detach(), 0.3, 1.0, 0.3 if cap else None)]
        self.cap, self.saved, self.steps, self.tolerance = cap, None, 0, 1e-9

    def gradient(self, weight: Tensor, number: int, goal: float) -> Tensor:
        return (1.0 + number) * (weight - goal)

    @rule(goal=st.floats(-2, 2))
    def step(self, goal: float) -> None:
        optimizer, learning = self.optimizer, [i for i, one in enumerate(self.plain) if not one.frozen]
        if not learning:
            return
        noise = optimizer._training_noise([self.params[i] for i in learning], range(K))
        eps = {i: [e.clone() for e in one] for i, one in zip(learning, noise, strict=True)}

        def closure() -> Tensor:
            optimizer.zero_grad()
            terms = [
                ((1.0 + i) / 2 * (p - goal).square()).sum()
                for i, p in enumerate(self.params)
                if not self.plain[i].frozen
            ]
            loss = torch.stack([term.double() for term in terms]).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        self.steps += 1
        for i in learning:
            one = self.plain[i]
            thetas = [one.mean + one.std * e for e in eps[i]]
            one.step([self.gradient(theta, i, goal) for theta in thetas], eps[i])

    @rule()
    def sample(self) -> None:
        before = [p.detach().clone() for p in self.params]
        with self.optimizer.sampled():
            pass
        samples = self.optimizer.sample_weights(2)  # of those frozen from the start there are none
        assert {p for p in self.params if p.requires_grad} <= set(samples)
        assert all(one.shape == (2, 3) for one in samples.values())
        assert all(map(torch.equal, before, self.params))

    @rule()
    def save(self) -> None:
        file = io.BytesIO()
        torch.save(self.optimizer.state_dict(), file)
        file.seek(0)
        self.saved = (torch.load(file, weights_only=True), copy.deepcopy(self.plain), self.steps)

    @precondition(lambda self: self.saved and len(self.saved[1]) == len(self.plain))
    @rule()
    def load(self) -> None:
        state, plain, self.steps = self.saved
        frozen = [one.frozen for one in self.plain]
        self.plain = copy.deepcopy(plain)
        for one, still in zip(self.plain, frozen, strict=True):
            one.frozen = still  # requires_grad belongs to the model
        self.optimizer.load_state_dict(state)

    @rule(wrong=st.sampled_from(["std", "group", "steps"]))
    def load_what_is_wrong(self, wrong: str) -> None:
        state: dict[str, Any] = copy.deepcopy(self.optimizer.state_dict())
        if wrong == "std":
            state["state"][0]["std"][0] = -1.0
        elif wrong == "group":
            state["param_groups"].append(state["param_groups"][0])
        else:
            del state["bgd"]["steps"]
        try:
            self.optimizer.load_state_dict(state)
        except ValueError:
            return
        raise AssertionError("it was loaded")

    @precondition(lambda self: len(self.plain) < 3)
    @rule(std=st.sampled_from([0.1, 0.5]), lr=st.sampled_from([1.0, 0.25]))
    def add_group(self, std: float, lr: float) -> None:
        p = nn.Parameter(torch.randn(3, dtype=torch.float64))
        self.params.append(p)
        self.optimizer.add_param_group({"params": [p], "std_init": std, "lr": lr})
        self.plain.append(Plain(p.detach(), std, lr, std if self.cap else None))

    @rule(data=st.data())
    def freeze_or_thaw(self, data: st.DataObject) -> None:
        i = data.draw(st.integers(0, len(self.plain) - 1))
        self.plain[i].frozen = not self.plain[i].frozen
        self.params[i].requires_grad_(not self.plain[i].frozen)

    @rule(data=st.data(), lr=st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    def change_lr(self, data: st.DataObject, lr: float) -> None:
        i = data.draw(st.integers(0, len(self.plain) - 1))
        self.optimizer.param_groups[i]["lr"] = lr
        self.plain[i].lr = lr

    @rule(value=st.floats(-3, 3))
    def set_a_weight(self, value: float) -> None:
        """Between steps the weights are the mean, whoever writes them."""
        with torch.no_grad():
            self.params[0].fill_(value)
        self.plain[0].mean = torch.full_like(self.plain[0].mean, value)

    @rule(dtype=st.sampled_from([torch.float32, torch.float64]))
    def move_type(self, dtype: torch.dtype) -> None:
        """As model.to(dtype) does: the posterior keeps what the weights cannot hold."""
        self.tolerance = 1e-4
        for p in self.params:
            p.data = p.data.to(dtype)

    @rule()
    def copy_all(self) -> None:
        self.optimizer, self.params = copy.deepcopy((self.optimizer, self.params))

    @invariant()
    def agrees_with_algorithm_1(self) -> None:
        if not hasattr(self, "plain"):
            return
        assert self.optimizer.steps == self.steps
        for p, one in zip(self.params, self.plain, strict=True):
            own = self.optimizer.state[p]
            torch.testing.assert_close(p.detach().double(), one.mean, rtol=self.tolerance, atol=self.tolerance)
            torch.testing.assert_close(own["std"].double(), one.std, rtol=self.tolerance, atol=1e-12)


TestSequences = Sequences.TestCase
TestSequences.settings = settings(max_examples=attacks(12), stateful_step_count=20, deadline=None)
