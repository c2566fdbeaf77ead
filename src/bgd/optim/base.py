"""An optimizer that holds a Gaussian posterior: groups, samples, noise, state dict. What a step does is a subclass's.

Relatives of BGD share all of this, and differ in how a step updates the posterior.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from bgd.optim import noise as noises
from bgd.optim.checkpoint import Check, check_state_dict, flag, one_of, whole
from bgd.optim.posterior import read_means, separate_means, std_init_of, write_weights
from bgd.optim.validation import Rule, check_group, check_std, posterior_dtype, resolve_seed, resolve_std
from bgd.validation import check_choice, check_whole

Params = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

# Separate streams of noise: sampling the posterior for a prediction does not change how it is learned.
_TRAINING, _SAMPLED = 0, 1


class PosteriorOptimizer(Optimizer):
    """A Gaussian (mean, std) for each weight; between steps the weights are the mean.

    Args:
        params: parameters, named parameters or parameter groups, as for any torch optimizer.
        defaults: of the groups: ``lr``, ``std_init``, ``std_min``, ``std_max``.
        antithetic: noise in pairs (+eps, -eps).
        noise: ``"torch"``, ``"hash"`` or ``"table"``, see :mod:`bgd.optim.noise`.
        seed: of the noise. Default: torch's global seed, which is read and never changed.
        generator: a generator to draw the seed from, instead of ``seed``.

    >>> weight = torch.nn.Parameter(torch.zeros(2))
    >>> defaults = {"lr": 1.0, "std_init": 0.1, "std_min": None, "std_max": None}
    >>> PosteriorOptimizer([weight], defaults).state[weight]["std"]
    tensor([0.1000, 0.1000])
    """

    own_settings: ClassVar[tuple[str, ...]] = ("antithetic", "noise", "seed", "steps", "samples_drawn")
    """Attributes that belong to the state dict."""

    checks: ClassVar[dict[str, Check]] = {
        "antithetic": flag,
        "noise": one_of(noises.KINDS),
        **dict.fromkeys(("seed", "steps", "samples_drawn"), whole()),
    }
    """What the entries of a state dict may be; without a check, of the type that they have."""

    rules: ClassVar[dict[str, Rule]] = {}
    """What a group may have beside ``lr``, ``std_init``, ``std_min`` and ``std_max``."""

    def __init__(
        self,
        params: Params,
        defaults: dict[str, Any],
        *,
        antithetic: bool = False,
        noise: noises.NoiseKind = "torch",
        seed: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        check_choice("noise", noise, noises.KINDS)
        if seed is not None and generator is not None:
            raise ValueError("give seed or generator, not both")
        if isinstance(params, nn.Module):
            name = type(self).__name__
            raise TypeError(
                f"{name} needs parameters, and got the model {type(params).__name__}: pass model.parameters()"
            )
        self.antithetic = antithetic
        self.noise: noises.NoiseKind = noise
        self.seed = resolve_seed(seed, generator)
        self.steps = 0
        self.samples_drawn = 0
        self._reset()
        super().__init__(params, defaults)

    def _reset(self) -> None:
        """Everything that exists only during a step, or can be made again."""
        self._inside_sampled = False
        self._in_step = False
        self._noise_buffers = noises.NoiseBuffers()

    # --- parameters

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with their own ``lr``, ``std_init``, ``std_min`` or ``std_max`` where given."""
        self._check_between_steps("add_param_group()")
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            check_group(group, self.rules)
            stds = resolve_std(group["std_init"], group["params"])
            for p, std in zip(group["params"], stds, strict=True):
                check_std(group, std)
                self.state[p] = {"mean": p.detach().to(std.dtype, copy=True), "std": std}
        except Exception:
            for p in self.param_groups.pop()["params"]:
                self.state.pop(p, None)
            raise
        if not stds:
            return
        scale = float(torch.stack([s.double().mean() for s in stds]).mean())
        if not isinstance(group["std_init"], int | float):
            for p in group["params"]:
                std = self.state[p]["std"]
                same = bool((std == std.flatten()[:1]).all())
                self.state[p]["std_init"] = std.flatten()[0].clone() if same and std.numel() else std.clone()
            # A function or a tensor has done its work; what a checkpoint keeps of it for the group is a number.
            group["std_init"] = scale

    def name_of(self, p: Tensor) -> str:
        """The name or shape of a parameter, for messages.

        >>> p = torch.nn.Parameter(torch.zeros(2))
        >>> from bgd import BGD
        >>> BGD([("scale", p)]).name_of(p)
        "'scale' (2,)"
        """
        for group in self.param_groups:
            for i, member in enumerate(group["params"]):
                if member is p:
                    names = group.get("param_names")
                    return f"{names[i]!r} {tuple(p.shape)}" if names else f"a parameter of shape {tuple(p.shape)}"
        return "a parameter"

    def _params(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _learning(self) -> list[Tensor]:
        return [p for p in self._params() if p.requires_grad]

    def _groups(self) -> dict[Tensor, dict[str, Any]]:
        return {p: group for group in self.param_groups for p in group["params"]}

    def _uncertain(self) -> list[Tensor]:
        """What a sample of the posterior changes: frozen weights too, once they have been learned.

        Those that were frozen from the start are as certain as whoever set them.
        """
        return [
            p
            for p, group in self._groups().items()
            if p.requires_grad or bool((self.state[p]["std"] != std_init_of(p, self.state, group)).any())
        ]

    # --- samples of the posterior

    @contextmanager
    def sampled(self) -> Iterator[None]:
        """Inside, the weights are one sample of the posterior; the mean comes back on exit, also on an exception.

        Weights that were learned and then frozen are sampled too; those that were frozen from the start are not.

        >>> model = torch.nn.Linear(3, 1)
        >>> from bgd import BGD
        >>> optimizer = BGD(model.parameters(), std_init=0.1)
        >>> before = model.weight.clone()
        >>> with optimizer.sampled():
        ...     print(torch.equal(model.weight, before))
        False
        >>> torch.equal(model.weight, before)
        True
        """
        self._check_between_steps("sampled()")
        params = self._uncertain()
        read_means(params, self.state)
        separate_means(params, self.state)
        eps = [e[0] for e in self._posterior_noise(params, 1)]
        self._inside_sampled = True
        try:
            write_weights(params, self.state, eps)
            yield
        finally:
            write_weights(params, self.state, None)
            self._inside_sampled = False

    @torch.no_grad()
    def sample_weights(self, count: int) -> dict[Tensor, Tensor]:
        """``count`` samples of the posterior as tensors: stacked along the first dimension, per parameter.

        They are the networks that as many uses of :meth:`sampled` would show; the model's weights stay untouched.

        >>> model = torch.nn.Linear(3, 1)
        >>> from bgd import BGD
        >>> BGD(model.parameters()).sample_weights(5)[model.weight].shape
        torch.Size([5, 1, 3])
        """
        check_whole(1, count=count)
        self._check_between_steps("sample_weights()")
        params = self._uncertain()
        read_means(params, self.state)
        eps = self._posterior_noise(params, count)
        return {
            p: torch.addcmul(self.state[p]["mean"], self.state[p]["std"], e).to(p.dtype)
            for p, e in zip(params, eps, strict=True)
        }

    # --- noise

    def _training_noise(self, params: list[Tensor], samples: Sequence[int]) -> list[Tensor]:
        """Noise of the given samples of this step, stacked: one tensor (len(samples), *p.shape) per parameter.

        It is valid until the next call, which uses the same memory.
        """
        if not self.antithetic:
            return self._noise(params, [self._noise_key(_TRAINING, self.steps, k) for k in samples])
        pairs = sorted({k // 2 for k in samples})
        eps = self._noise(params, [self._noise_key(_TRAINING, self.steps, pair) for pair in pairs])
        rows = [pairs.index(k // 2) for k in samples]
        signs = [1.0 - 2.0 * (k % 2) for k in samples]
        if rows == [0]:
            return eps if signs[0] > 0 else [-e for e in eps]
        return [e[rows] * e.new_tensor(signs).view(-1, *[1] * (e.dim() - 1)) for e in eps]

    def _posterior_noise(self, params: list[Tensor], count: int) -> list[Tensor]:
        first, self.samples_drawn = self.samples_drawn, self.samples_drawn + count
        keys = [self._noise_key(_SAMPLED, first + i) for i in range(count)]
        kind: noises.NoiseKind = "torch" if self.noise == "table" else self.noise  # a sample wants fresh numbers
        return self._noise_buffers.normal(kind, keys, [self.state[p]["mean"] for p in params], keep=False)

    def _noise(self, params: list[Tensor], keys: Sequence[int]) -> list[Tensor]:
        return self._noise_buffers.normal(self.noise, keys, [self.state[p]["mean"] for p in params])

    def _noise_key(self, stream: int, *coordinates: int) -> int:
        return noises.fold(self.seed, stream, *coordinates)

    # --- saving and copying

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs: posterior, groups, and the noise's seed and step.

        Plain tensors, numbers and strings: ``torch.load(..., weights_only=True)`` reads it.
        """
        self._check_between_steps("state_dict()")
        read_means(self._params(), self.state)  # frozen ones may have been set
        return {**super().state_dict(), "bgd": self._own_state()}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` saved, on the parameters' devices, and set the weights to the mean.

        As for every torch optimizer the settings come back too, ``mc_samples`` and all: change them afterwards. A state
        dict with a missing, unknown or impossible entry is refused whole.
        """
        self._check_between_steps("load_state_dict()")
        self._check_state_dict(state_dict)
        params = self._params()
        saved = [state_dict["state"][i] for group in state_dict["param_groups"] for i in group["params"]]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "bgd"})
        for p, state in zip(params, saved, strict=True):
            # The base class casts state to the weights' own type; the posterior is kept in at least float32.
            self.state[p] = {k: v.to(p.device, posterior_dtype(p), copy=True) for k, v in state.items()}
            p.copy_(self.state[p]["mean"])
        self._load_own_state(state_dict["bgd"])

    def _check_state_dict(self, state_dict: Any) -> None:
        """Refuse, before anything changes, what cannot be loaded."""
        own = self._own_state()
        check_state_dict(state_dict, own, self.param_groups, self.state, self.checks, self.name_of, self.rules)

    def _own_state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.own_settings}

    def _load_own_state(self, state: dict[str, Any]) -> None:
        for name in self.own_settings:
            setattr(self, name, state[name])

    def __getstate__(self) -> dict[str, Any]:
        self._check_between_steps("copying or pickling")
        own = {k: v for k, v in self.__dict__.items() if k in self.own_settings}
        base = super().__getstate__()
        if not isinstance(base["defaults"]["std_init"], int | float | None):
            # A function may not be picklable, and tensors were for the groups of then: a new group brings its own.
            base["defaults"] = base["defaults"] | {"std_init": "not kept by a copy"}
        return {**base, **own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._reset()

    # --- checks

    def _check_between_steps(self, what: str) -> None:
        if self._in_step:
            raise RuntimeError(f"{what} in the middle of a step: the weights are a sample, not the mean")
        if self._inside_sampled:
            raise RuntimeError(f"{what} inside sampled(): the weights are a sample, not the mean")
