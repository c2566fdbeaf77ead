"""A learner as one file of arrays: the same bits when it is read again, and nothing in the file can run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bgd.exact.head import ExactError
from bgd.exact.learner import ExactLearner
from bgd.files import UNREADABLE, pack_arrays, unpack_arrays, write_atomically


def save(learner: ExactLearner, path: str | Path) -> None:
    """Write all that a learner has learnt, features included, as numpy's .npz; the file is replaced whole.

    >>> import tempfile
    >>> from bgd.exact.features import Identity
    >>> learner, again = ExactLearner(Identity, outputs=1), ExactLearner(Identity, outputs=1)
    >>> learner.learn(torch.ones(3, 2), torch.ones(3, 1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(learner, Path(folder, "learner.npz"))
    ...     load(again, Path(folder, "learner.npz"))
    >>> torch.equal(learner.solution().posterior.mean, again.solution().posterior.mean)
    True
    """
    arrays: list[np.ndarray[Any, Any]] = []
    header = np.array(json.dumps(_without_arrays(learner.state_dict(), arrays)))
    write_atomically(Path(path), pack_arrays({"header": header} | {str(i): array for i, array in enumerate(arrays)}))


def load(learner: ExactLearner, path: str | Path) -> None:
    """Read what was saved into a learner made with the same arguments; it is as it was where that fails.

    Raises:
        ExactError: where the file is not one of :func:`save`, or is damaged.
    """
    try:
        parts = unpack_arrays(Path(path).read_bytes())
        header = json.loads(str(parts.pop("header")))
        learner.load_state_dict(_with_arrays(header, {name: torch.from_numpy(part) for name, part in parts.items()}))
    except UNREADABLE as error:
        reason = f"no entry {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        wanted = "give a file of save(), and a learner of the same arguments"
        raise ExactError(f"{path} holds no such learner ({reason}): {wanted}") from error


def _without_arrays(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """JSON, in which {"array": i} stands for an array."""
    if isinstance(value, torch.Tensor):
        arrays.append(value.detach().cpu().numpy())
        return {"array": len(arrays) - 1}
    if isinstance(value, dict):
        return {"dict": {name: _without_arrays(part, arrays) for name, part in value.items()}}
    if isinstance(value, list | tuple):
        return [_without_arrays(part, arrays) for part in value]
    return value


def _with_arrays(value: Any, arrays: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_with_arrays(part, arrays) for part in value]
    if isinstance(value, dict):
        if "array" in value:
            return arrays[str(value["array"])]
        return {name: _with_arrays(part, arrays) for name, part in value["dict"].items()}
    return value
