"""Validation of an optimizer's state dict, whole, before anything of it is loaded: an error names the wrong entry.

A state dict comes from a file that may be damaged, of another version, or of another model. So nothing in it is
trusted: not that an entry is there, nor its type, shape, sign or size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bgd.optim.update import std_bounds
from bgd.optim.validation import COMMON, PASSED_ON, Rule, check_group, posterior_dtype

Check = Callable[[Any], bool]
"""Whether a setting may have a value."""


class StateDictError(ValueError):
    """A state dict that cannot be loaded: the message names the entry, and the optimizer is as it was.

    >>> raise StateDictError("bgd['seed'] is -1")
    Traceback (most recent call last):
    bgd.optim.checkpoint.StateDictError: bgd['seed'] is -1. Nothing has been loaded
    """

    def __init__(self, text: str) -> None:
        super().__init__(f"{text}{'' if text.endswith('?') else '.'} Nothing has been loaded")


# --- what a setting may be


def flag(value: Any) -> bool:
    """Whether a value is True or False.

    >>> flag(True), flag(1)
    (True, False)
    """
    return isinstance(value, bool)


def text(value: Any) -> bool:
    """Whether a value is a string.

    >>> text("128x784 128"), text(None)
    (True, False)
    """
    return isinstance(value, str)


def whole(least: int = 0, most: float = math.inf) -> Check:
    """A whole number in these bounds.

    >>> whole(1)(0), whole(1)(1), whole(1)(1.0), whole(0, 2)(3)
    (False, True, False, False)
    """
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def number(above: float = -math.inf, most: float = math.inf) -> Check:
    """A number in (above, most]; NaN is none.

    >>> number(0)(0.0), number(0)(1), number(0)(float("nan"))
    (False, True, False)
    """
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and above < value <= most


def one_of(choices: Iterable[str]) -> Check:
    """One of these strings.

    >>> one_of(["mean", "sum"])("max")
    False
    """
    known = tuple(choices)
    return lambda value: isinstance(value, str) and value in known


def list_of(check: Check, most: float = math.inf) -> Check:
    """A list of such values, of at most so many.

    >>> list_of(whole())([0, 1]), list_of(whole())([-1]), list_of(whole())(3)
    (True, False, False)
    """
    return lambda value: isinstance(value, list | tuple) and len(value) <= most and all(map(check, value))


def record(**fields: Check) -> Check:
    """A dict with exactly these entries.

    >>> record(last=flag)({"last": True}), record(last=flag)({})
    (True, False)
    """
    return lambda value: (
        isinstance(value, dict) and value.keys() == fields.keys() and all(fields[key](value[key]) for key in fields)
    )


def _like(known: Any) -> Check:
    """Of the type of a value; numbers are finite."""
    if isinstance(known, float):
        return lambda value: number()(value) and math.isfinite(value)
    return lambda value: type(value) is type(known)


# --- the state dict


def check_state_dict(
    given: Any,
    own: Mapping[str, Any],
    groups: Sequence[Mapping[str, Any]],
    state: Mapping[Tensor, Mapping[str, Any]],
    checks: Mapping[str, Check],
    name_of: Callable[[Tensor], str],
    rules: Mapping[str, Rule],
) -> None:
    """Refuse a state dict with a missing, unknown or impossible entry.

    Args:
        given: the state dict to load.
        own: the settings and counters of the optimizer that is to load it.
        groups: its parameter groups.
        state: its posterior.
        checks: what each setting may be; another has the type that it has now.
        name_of: names a parameter.
        rules: for the settings of its groups.

    >>> check_state_dict({"state": {}}, {}, [], {}, {}, str, {})
    Traceback (most recent call last):
    bgd.optim.checkpoint.StateDictError: not a state dict of BGD: it has the keys ['state'], and 'bgd' is missing. ...
    """
    if not isinstance(given, Mapping):
        raise StateDictError(f"not a state dict of BGD, but {_describe(given)}")
    for key in ("bgd", "state", "param_groups"):
        if key not in given:
            keys = sorted(map(str, given))
            raise StateDictError(f"not a state dict of BGD: it has the keys {keys}, and {key!r} is missing")
    _check_keys("the state dict", given, ("bgd", "state", "param_groups"))
    _check_groups(given["param_groups"], groups, rules)
    params = [p for group in groups for p in group["params"]]
    _check_keys("'state'", given["state"], range(len(params)))
    for i, p in enumerate(params):
        _check_posterior(f"state[{i!r}]", given["state"][i], p, state[p], name_of)
    _check_initial_stds(given)
    _check_keys("'bgd'", given["bgd"], own)
    for key, value in given["bgd"].items():
        if not checks.get(key, _like(own[key]))(value):
            raise StateDictError(f"bgd[{key!r}] is {_describe(value)}")


def _check_groups(given: Any, groups: Sequence[Mapping[str, Any]], rules: Mapping[str, Rule]) -> None:
    if not isinstance(given, list | tuple) or len(given) != len(groups):
        count = len(given) if isinstance(given, list | tuple) else _describe(given)
        raise StateDictError(f"param_groups has {count} groups, and the optimizer {len(groups)}: another model?")
    first = 0
    for i, (group, own) in enumerate(zip(given, groups, strict=True)):
        entry, count = f"param_groups[{i}]", len(own["params"])
        settings = (*COMMON, *rules)
        _check_keys(entry, group, ("params", *(key for key in settings if key in own)), (*PASSED_ON, *settings))
        numbers = list(range(first, first + count))
        if not list_of(whole())(group["params"]) or list(group["params"]) != numbers:
            found = _describe(group["params"])
            raise StateDictError(f"{entry}['params'] is {found}, and the optimizer has {numbers}: another model?")
        names = group.get("param_names", [""] * count)
        if not list_of(text)(names) or len(names) != count:
            raise StateDictError(f"{entry}['param_names'] is {_describe(names)}, not {count} names")
        _check_group_settings(entry, group, rules, empty=not count)
        first += count


def _check_group_settings(entry: str, group: Mapping[str, Any], rules: Mapping[str, Rule], empty: bool) -> None:
    finite, largest = number(-math.ulp(0.0), torch.finfo(torch.float64).max), std_bounds(torch.float64)[1]
    for key in ("lr", "initial_lr", "max_lr", "min_lr", "swa_lr"):
        value = group.get(key, 0.0)
        if isinstance(value, Tensor) and value.numel() == 1 and not value.is_complex() and not value.is_meta:
            value = value.item()
        if not finite(value):
            raise StateDictError(f"{entry}[{key!r}] is {_describe(value)}, not a finite number from 0")
    if not (empty or number(0, largest)(group["std_init"])):  # an empty group may have kept a function
        raise StateDictError(f"{entry}['std_init'] is {_describe(group['std_init'])}, not a positive finite number")
    for key in ("std_min", "std_max"):
        value = group.get(key)
        if not (value is None or isinstance(value, str) or number(0)(value)):
            raise StateDictError(f"{entry}[{key!r}] is {_describe(value)}")
    try:
        check_group(dict(group), rules)
    except (TypeError, ValueError) as error:
        raise StateDictError(f"{entry}: {error}") from error


def _check_posterior(
    entry: str, given: Any, p: Tensor, own: Mapping[str, Any], name_of: Callable[[Tensor], str]
) -> None:
    """Check the mean and std of one parameter, and what a relative of BGD keeps beside them."""
    _check_keys(entry, given, [key for key in own if key != "std_init"], ("std_init",))
    dtype = posterior_dtype(p)
    for key, value in given.items():
        name = f"{entry}[{key!r}]"
        kinds = (torch.float32, torch.float64)  # half precision cannot hold a posterior
        if not isinstance(value, Tensor) or value.is_meta or value.is_sparse or value.dtype not in kinds:
            raise StateDictError(f"{name} is {_describe(value)}, not a tensor of float32 or float64")
        shapes = (p.shape, torch.Size()) if key == "std_init" else (own[key].shape,)
        if value.shape not in shapes:
            found = f"{name} has the shape {tuple(value.shape)}"
            raise StateDictError(f"{found}, and belongs to {name_of(p)}: is it of another model?")
        low, high = std_bounds(dtype) if key.startswith("std") else (-torch.finfo(dtype).max, torch.finfo(dtype).max)
        if not bool(((value >= low) & (value <= high)).all()):
            wrong = value[~((value >= low) & (value <= high))][0].item()
            raise StateDictError(f"{name} holds {wrong:g}, and lies from {low:.1e} to {high:.1e} for {name_of(p)}")


def _check_initial_stds(given: Mapping[str, Any]) -> None:
    """All parameters of a group have an initial std of their own, or none has."""
    for group in given["param_groups"]:
        own = [i for i in group["params"] if "std_init" in given["state"][i]]
        if own and (missing := [i for i in group["params"] if i not in own]):
            raise StateDictError(f"state[{missing[0]}] has no 'std_init', as state[{own[0]}] has")


def _check_keys(entry: str, given: Any, needed: Collection[Any], optional: Collection[Any] = ()) -> None:
    if not isinstance(given, Mapping):
        raise StateDictError(f"{entry} is {_describe(given)}, not a dict")
    for key in needed:
        if key not in given:
            raise StateDictError(f"{entry} has no {key!r}")
    for key in given:
        if key not in needed and key not in optional:
            raise StateDictError(f"{entry} has an unknown {key!r}")


def _describe(value: Any) -> str:
    """A value in a message: short, whatever it is."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)} and {value.dtype}"
    shown = repr(value)
    return f"{shown[:60]}..." if len(shown) > 60 else shown
