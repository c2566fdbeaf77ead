"""Which dimension of a module's inputs holds the examples, and how many there are."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_leaves

TIME_OR_BATCH_FIRST = (nn.RNNBase, nn.MultiheadAttention, nn.Transformer)
"""Modules whose ``batch_first`` says where they expect the examples."""


def batch_size_of(module: nn.Module, args: Any, kwargs: Any) -> int:
    """The number of examples in the inputs of a module; 0 where they hold no tensor.

    It is the first size of the first tensor, or the second where the module itself says so by ``batch_first=False``.

    >>> import torch
    >>> batch_size_of(nn.Linear(3, 1), (torch.zeros(8, 3),), {})
    8
    >>> batch_size_of(nn.LSTM(3, 2), (torch.zeros(5, 8, 3),), {})
    8
    """
    for value in (*args, *kwargs.values()):
        if isinstance(value, PackedSequence):
            return int(value.batch_sizes[0])
        if _is_ragged(value):
            raise RuntimeError(
                f"cannot tell the examples of a batch that is a list of {len(value)} tensors: pass one tensor with the "
                'examples in its first dimension, or several inputs as arguments, or use estimator="shared"'
            )
        for leaf in tree_leaves(value):
            if isinstance(leaf, Tensor) and leaf.dim():
                return leaf.shape[int(leaf.dim() == 3 and is_time_first(module))]
    return 0


def is_time_first(module: nn.Module) -> bool:
    """Whether a module of torch expects (time, batch, features).

    >>> is_time_first(nn.LSTM(3, 2)), is_time_first(nn.LSTM(3, 2, batch_first=True)), is_time_first(nn.Linear(1, 1))
    (True, False, False)
    """
    if isinstance(module, TIME_OR_BATCH_FIRST):
        return not module.batch_first
    if isinstance(module, nn.TransformerEncoder | nn.TransformerDecoder):
        module = module.layers[0]
    if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
        return not module.self_attn.batch_first
    return False


def check_time_first(module: nn.Module, args: Any, batch: int) -> None:
    """Refuse a batch that was counted along time, as a module inside reveals.

    >>> import torch
    >>> check_time_first(nn.LSTM(3, 2), (torch.zeros(5, 8, 3),), batch=5)
    Traceback (most recent call last):
    RuntimeError: LSTM(batch_first=False) is given (5, 8, 3), so its 8 examples are in the second dimension, but ...
    """
    x = args[0] if args else None
    if isinstance(x, Tensor) and x.dim() == 3 and is_time_first(module) and x.shape[1] != batch == x.shape[0]:
        raise RuntimeError(
            f"{type(module).__name__}(batch_first=False) is given {tuple(x.shape)}, so its {x.shape[1]} examples are "
            f"in the second dimension, but the model is given {batch} in the first of its inputs: pass the examples "
            'first and transpose inside the model, or use estimator="shared"'
        )


def _is_ragged(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(isinstance(item, Tensor) for item in value)
