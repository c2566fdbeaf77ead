"""What may have happened to a file of JSON: entries gone or of another shape, and plain damage."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

WRONG: tuple[Any, ...] = (None, 7, -1, 1.5, True, "seven", [], {}, ["a"], {"a": 1}, [[]], 10**30, "\ud800", "a/../b")


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key in value if isinstance(value, dict) else range(min(len(value), 3)) if isinstance(value, list) else ():
        yield from _paths(value[key], (*path, key))


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    if new is KeyError:
        del holder[path[-1]]
    else:
        holder[path[-1]] = new
    return changed


def wrong_shapes(content: bytes, pick: random.Random, count: int) -> Iterator[bytes]:
    """Valid JSON of another shape: one entry replaced or gone."""
    value = json.loads(content)
    paths = list(_paths(value))
    for _ in range(count):
        path = pick.choice(paths)
        new = pick.choice((*WRONG, KeyError) if path else WRONG)
        yield json.dumps(_replaced(value, path, new)).encode()


def damages(content: bytes, pick: random.Random, count: int) -> Iterator[bytes]:
    """Bytes changed, lost, doubled or cut off."""
    for _ in range(count):
        i, kind = pick.randrange(len(content)), pick.randrange(6)
        yield (
            content[:i] + bytes([content[i] ^ (1 << pick.randrange(8))]) + content[i + 1 :],
            content[:i],
            content[:i] + content[i + 1 :],
            content[:i] + b"\xff\xfe\x00" + content[i:],
            content + content,
            b"",
        )[kind]
