r"""Noise of its own for every example of a batch, in one forward and backward pass.

The loss is a sum over examples n, so E[g] = sum_n E[g_n] and E[g eps] = sum_n E[g_n eps_n], and each example may have
its own eps_n ~ N(0, 1). With one eps for the batch and signs s_n (outputs) and r_n (inputs) of +-1 (Wen et al., 2018,
"flipout"), eps_n = eps * (s_n r_n^T) is N(0, 1) for every example, and a linear layer becomes

    y_n = M x_n + s_n * ((std * eps) (r_n * x_n)).

With delta_n the gradient at the output, the gradient of M is sum_n delta_n x_n^T, which is E[g], and that of
Z = std * eps is sum_n (s_n * delta_n)(r_n * x_n)^T, so that E[g eps] = eps * dL/dZ = Z * dL/dZ / std. Convolutions have
a sign for each channel. What is used in any other way (the scale of a norm, a free parameter, an LSTM) gets one sample
for the whole batch in the same pass: Z is added to it.

Nobody rewrites a model: while a module of the network runs in training mode, a ``TorchFunctionMode`` intercepts
``F.linear``, ``F.conv*``, ``F.embedding`` and every other torch function that is given one of the parameters. That is
more robust than replacing layers: it sees ``nn.MultiheadAttention``, tied weights and functional calls alike.

Everything random is a pure function of (seed, step, pass, parameter), so a layer that is called twice, or recomputed by
activation checkpointing, uses the same sample of the weights for the same example.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from bgd.optim.estimators.precision import in_few_digits
from bgd.optim.noise import fold

POOL = 1 << 20
"""Signs are slices of one fixed table: the estimate is unbiased for any signs, since eps is symmetric; they only make
the noise of different examples uncorrelated."""

_CONVOLUTIONS = {F.conv1d: 1, F.conv2d: 2, F.conv3d: 3}
_TRANSPOSED = {F.conv_transpose1d: 1, F.conv_transpose2d: 2, F.conv_transpose3d: 3}
_PERTURBED_VIEWS = ("T", "mT", "H", "mH", "real", "imag")
_PLAIN = {
    *("dim", "size", "numel", "stride", "data_ptr", "element_size", "nelement", "storage_offset", "storage"),
    *("untyped_storage", "is_contiguous", "is_floating_point", "is_complex", "is_shared", "is_pinned", "is_signed"),
    *("detach", "register_hook", "retain_grad", "get_device", "has_names", "__len__", "__repr__", "__format__"),
    *("__hash__", "__deepcopy__", "__reduce_ex__", "is_same_size", "type", "tolist", "item", "equal", "allclose"),
}


@cache
def _sign_table(device: torch.device, dtype: torch.dtype) -> Tensor:
    bits = torch.randint(0, 2, (POOL,), generator=torch.Generator().manual_seed(20180310))
    return (bits.float() * 2 - 1).to(device, dtype)


def signs(key: int, rows: int, columns: int, like: Tensor, place: tuple[int, int] = (0, 1)) -> Tensor:
    """A (rows, columns) matrix of +-1, a pure function of the key: the i-th of n such parts of a larger one.

    >>> signs(7, 2, 3, torch.zeros(1)).abs().unique()
    tensor([1.])
    """
    part, parts = place
    size = rows * columns
    need = size * parts
    table, length = _sign_table(like.device, like.dtype), POOL
    if need > length:
        times = -(-need // length) + 1
        table, length = table.repeat(times), times * length
    start = key % (length - need + 1) + part * size
    return table.as_strided((rows, columns), (columns, 1), start)


class Perturbation(TorchFunctionMode):
    """The noise of one pass, and the functions that add it to the parameters of a network.

    Args:
        params: the parameters, in the order of the optimizer.
        noise: Z = std * eps of each, tensors that require a gradient.
        batch: number of examples.
        key: of the signs of this pass.
        shared: numbers of parameters that are used in several ways, and so get one sample for the whole batch.
        place: (i, n): the examples are the i-th of n equal parts of a batch, each with its own signs.
        cautious: whether examples may be in the second dimension (time first), so that inputs which leave it open get
            one sample for the whole batch.

    Attributes:
        time_first: whether the module that runs now has its examples in the second dimension.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        noise: Sequence[Tensor],
        batch: int,
        key: int,
        shared: frozenset[int],
        *,
        place: tuple[int, int] = (0, 1),
        cautious: bool = False,
    ) -> None:
        super().__init__()
        self.batch = batch
        self.shared = shared
        self.conflicts: set[int] = set()
        self._key = key
        self._noise = noise
        self._numbers = {id(p): i for i, p in enumerate(params)}
        self._uses: dict[int, str] = {}
        self.time_first = False
        self._place = place
        self._cautious = cautious

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Replace a function that is given one of the parameters by its perturbed form."""
        del types
        run = self.call_eagerly if torch.compiler.is_dynamo_compiling() else self.call
        return run(func, args, kwargs or {})

    def call_eagerly(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """:meth:`call`, kept out of compiled graphs."""
        return self.call(func, args, kwargs)

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function, perturbed where it is given one of the parameters."""
        if func is F.multi_head_attention_forward:
            return self._attention(args, kwargs)
        if not self._has_parameter(args, kwargs) or _leaves_values_alone(func):
            return func(*args, **kwargs)
        if func is F.linear:
            return self._linear(*args, **kwargs)
        if func in _CONVOLUTIONS:
            return self._convolution(func, _CONVOLUTIONS[func], False, *args, **kwargs)
        if func in _TRANSPOSED:
            return self._convolution(func, _TRANSPOSED[func], True, *args, **kwargs)
        if func is F.embedding:
            return self._embedding(*args, **kwargs)
        args, kwargs = tree_map(self._sampled, (args, kwargs))
        return func(*args, **kwargs)

    # --- layers

    def _linear(self, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        layout = self._layout(input)
        if layout is None:
            return F.linear(input, self._sampled(weight), self._sampled(bias))
        out = F.linear(input, self._if_shared(weight), self._if_shared(bias))
        if (i := self._number(weight, "linear")) is None:
            return self._add_bias_noise(out, bias, layout, 0)
        few = in_few_digits(input, out.numel() * weight.shape[1])
        signed, noise = few * self._signs(i, 1, weight.shape[1], few, layout), self._noise[i].to(few.dtype)
        if self._uses[i] == "embedding":  # its rows have no signs
            return self._add_bias_noise(out + F.linear(signed, noise), bias, layout, 0)
        noisy = F.linear(signed, noise, self._bias_noise(bias, i, few.dtype))
        return torch.addcmul(out, self._signs(i, 0, weight.shape[0], out, layout), noisy)

    def _convolution(
        self, func: Callable[..., Tensor], dims: int, transposed: bool, input: Tensor, weight: Tensor,
        bias: Tensor | None = None, *args: Any, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        layout = self._layout(input) if input.dim() == dims + 2 else None
        if layout is None:
            return func(input, self._sampled(weight), self._sampled(bias), *args, **kwargs)
        out = func(input, self._if_shared(weight), self._if_shared(bias), *args, **kwargs)
        if (i := self._number(weight, "convolution")) is None:
            return self._add_bias_noise(out, bias, layout, dims)
        few = in_few_digits(input, _products(out, input, weight, transposed))
        r = self._signs(i, int(not transposed), input.shape[1], few, layout, spatial=dims)
        s = self._signs(i, int(transposed), out.shape[1], out, layout, spatial=dims)
        noise, bias_noise = self._noise[i].to(few.dtype), self._bias_noise(bias, i, few.dtype)
        return torch.addcmul(out, s, func(few * r, noise, bias_noise, *args, **kwargs))

    def _embedding(
        self, input: Tensor, weight: Tensor, padding_idx: int | None = None, *args: Any, **kwargs: Any
    ) -> Tensor:
        layout = self._layout(input.unsqueeze(-1))
        if layout is None or self._used_otherwise(weight, "embedding"):
            return F.embedding(input, self._sampled(weight), padding_idx, *args, **kwargs)
        out = F.embedding(input, weight, padding_idx, *args, **kwargs)
        i = self._number(weight, "embedding")
        assert i is not None
        noise = F.embedding(input, self._noise[i], padding_idx).to(out.dtype)
        return torch.addcmul(out, self._signs(i, 1, weight.shape[1], out, layout), noise)

    def _bias_noise(self, bias: Tensor | None, weight: int, dtype: torch.dtype) -> Tensor | None:
        """Noise of a bias beside its weight's: independent of it, and under the same signs of the outputs."""
        j = None if bias is None else self._number(bias, f"bias of {weight}")
        return None if j is None else self._noise[j].to(dtype)

    def _add_bias_noise(self, out: Tensor, bias: Tensor | None, layout: tuple[int, int], spatial: int) -> Tensor:
        if bias is None or (i := self._number(bias, "bias")) is None:
            return out
        noise = self._noise[i].to(out.dtype).view(-1, *[1] * spatial)
        return torch.addcmul(out, self._signs(i, 0, len(bias), out, layout, spatial=spatial), noise)

    def _attention(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Attention calls ``F.linear`` inside: run its own code, intercepted too; its inputs are (time, batch, ...)."""
        query = args[0] if args else kwargs["query"]
        before, self.time_first = self.time_first, query.dim() == 3
        try:
            with self:
                return _attention_without_dispatch()(*args, **kwargs)
        finally:
            self.time_first = before

    # --- noise

    def _signs(
        self, i: int, dim: int, features: int, like: Tensor, layout: tuple[int, int], spatial: int = 0
    ) -> Tensor:
        """The signs of a dimension of a parameter, shaped so that they multiply ``like`` example by example."""
        position, repeat = layout
        matrix = signs(fold(self._key, i, dim), self.batch, features, like, self._place)
        if repeat > 1:
            matrix = matrix.repeat(repeat, 1) if self.time_first else matrix.repeat_interleave(repeat, 0)
        middle = max(like.dim() - 2 - spatial - position, 0)
        return matrix.view(len(matrix), *[1] * middle, features, *[1] * spatial)

    def _layout(self, input: Tensor) -> tuple[int, int] | None:
        """Which dimension holds the examples, and how many rows each has there; None where none does."""
        sizes = input.shape[:-1]
        if not sizes or not self.batch:
            return None
        if self.time_first and len(sizes) == 2:
            return (1, 1) if sizes[1] == self.batch else None
        if sizes[0] % self.batch == 0 and sizes[0]:
            if self._cautious and len(sizes) == 2 and sizes[1] == self.batch:
                return None
            return 0, sizes[0] // self.batch
        return next(((i, 1) for i, size in enumerate(sizes) if size == self.batch), None)

    def _sampled(self, value: Any) -> Any:
        """A parameter with one sample for the whole batch; anything else as it is."""
        i = self._numbers.get(id(value))
        if i is None:
            return value
        self._use(i, "shared")
        return value + self._noise[i].to(value.dtype)

    def _number(self, p: Tensor, use: str) -> int | None:
        """The number of a parameter that gets noise for each example; None where it is not perturbed in this way."""
        i = self._numbers.get(id(p))
        if i is None or i in self.shared:
            return None
        self._use(i, use)
        return i

    def _if_shared(self, value: Any) -> Any:
        """For the unperturbed product: a parameter that gets one sample for the batch is sampled here already."""
        return self._sampled(value) if self._numbers.get(id(value)) in self.shared else value

    def _used_otherwise(self, p: Tensor, use: str) -> bool:
        i = self._numbers.get(id(p))
        return i is None or i in self.shared or self._uses.get(i, use) != use

    def _use(self, i: int, use: str) -> None:
        first = self._uses.setdefault(i, use)
        if first != use and not (first == "embedding" and use == "linear"):
            self.conflicts.add(i)

    def _has_parameter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        numbers = self._numbers
        for value in (*args, *kwargs.values()):
            if id(value) in numbers:
                return True
            if isinstance(value, list | tuple) and any(id(one) in numbers for one in value):
                return True
        return False


def _products(out: Tensor, input: Tensor, weight: Tensor, transposed: bool) -> int:
    """How many products of two numbers a convolution takes."""
    each = weight.numel() // max(weight.shape[0], 1)
    return (input if transposed else out).numel() * each


def _leaves_values_alone(func: Callable[..., Any]) -> bool:
    """Whether a function reads properties of a tensor, or writes into it: neither is to see a sample."""
    name = getattr(func, "__name__", "")
    if name == "__get__":
        return getattr(getattr(func, "__self__", None), "__name__", "") not in _PERTURBED_VIEWS
    return name in _PLAIN or name == "__set__" or (name.endswith("_") and not name.endswith("__"))


@cache
def _attention_without_dispatch() -> Callable[..., Any]:
    """``F.multi_head_attention_forward`` without its own check for overrides, which would call the mode for ever."""
    original = F.multi_head_attention_forward
    names = {**original.__globals__, "has_torch_function": lambda *_: False}
    copy = types.FunctionType(original.__code__, names, original.__name__, original.__defaults__, original.__closure__)
    copy.__kwdefaults__ = original.__kwdefaults__
    return copy
