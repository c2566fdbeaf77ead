"""A learner as one file: arrays (npz, without objects), a header in JSON, a digest of both. Nothing in it is code.

A line ``bgd-stream 1``, a line with the SHA-256 of the rest, then the npz; the header is one of its arrays.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bgd.errors import BGDError
from bgd.files import pack_arrays, unpack_arrays, write_atomically
from bgd.streams.checking import check_arrays, check_header, finite
from bgd.streams.classes import ClassMixture
from bgd.streams.deep import Net, deep_sizes
from bgd.streams.encoding import Encoder
from bgd.streams.filters import Bank
from bgd.streams.finish import Finish
from bgd.streams.mixture import Group, Mixture, frequencies
from bgd.streams.scaling import Scaling, empty
from bgd.streams.targets import TargetMixture

MAGIC = b"bgd-stream 1\n"
Arrays = dict[str, NDArray[Any]]
M = TypeVar("M", bound=Mixture)


def save_mixture(path: Path, mixture: Mixture, extra: dict[str, Any]) -> None:
    """Write everything that the learner is; ``extra`` is kept as JSON."""
    encoder = mixture.encoder
    header = {
        "kind": type(mixture).__name__,
        "members": repr(mixture.groups),
        "seed": mixture.seed,
        "outputs": mixture.outputs,
        "seen": mixture.seen,
        "width": encoder.width,
        "scale": encoder.scale,
        "columns": list(encoder.columns),
        "extra": extra,
        "finish": list(mixture.finish) if isinstance(mixture, ClassMixture) else [],
    }
    text = np.frombuffer(_json(header).encode(), dtype=np.uint8)
    content = pack_arrays({"header": text} | _arrays(mixture))
    write_atomically(path, MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def load_mixture(path: Path, kind: type[M], groups: tuple[Group, ...]) -> tuple[M, dict[str, Any]]:
    """The learner and the extra of a file; it must be whole, and of this kind and these members."""
    arrays, header = _read(path)
    if header["kind"] != kind.__name__ or header["members"] != repr(groups):
        raise BGDError(f"{path} holds a {header['kind']} of other members than this version's {kind.__name__}")
    check_header(header, sum(part.size for part in arrays.values()))
    check_arrays(arrays, _of_that_size(kind, groups, header))
    mixture = kind(groups, header["seed"], header["outputs"], header["seen"])
    columns = {name: i for i, name in enumerate(header["columns"])}
    scaling = Scaling(*(arrays[f"scaling.{name}"] for name in Scaling._fields))
    mixture.encoder = Encoder(header["width"], header["scale"], columns, arrays["indicator"], scaling)
    mixture.omegas = frequencies(mixture.maps, len(columns), header["scale"], header["seed"])
    sizes = {"mean": len(groups), "covariance": len(arrays["variance"])}
    mixture.bank = Bank._make(
        tuple(arrays[f"{name}{i}"] for i in range(sizes[name])) if name in sizes else arrays[name]
        for name in Bank._fields
    )
    mixture.weights = arrays["weights"]
    if isinstance(mixture, ClassMixture):
        mixture.finish = Finish(*finite("finish", header["finish"], len(Finish._fields)))
        net_sizes = deep_sizes(mixture.bank.mean[0].shape[1] - 1, mixture.outputs)
        mixture.net = Net(net_sizes, *(arrays[f"deep.{name}"] for name in Net._fields[1:]))
    if isinstance(mixture, TargetMixture):
        mixture.shape, mixture.rate = arrays["shape"], arrays["rate"]
        mixture.scaling = Scaling(*(arrays[f"targets.{name}"] for name in Scaling._fields))
    return mixture, header["extra"]


def _of_that_size(kind: type[M], groups: tuple[Group, ...], header: dict[str, Any]) -> Arrays:
    """The arrays of a new learner, which those of a file must be like."""
    fresh, columns = kind(groups, header["seed"]), len(header["columns"])
    fresh.encoder = Encoder(header["width"], header["scale"], {}, np.zeros(columns, bool), empty(columns))
    fresh._make_room(columns, header["outputs"])
    if isinstance(fresh, TargetMixture):
        fresh.scaling, fresh.shape = empty(fresh.outputs), np.ones(len(fresh.weights))
        fresh.rate = np.ones((len(fresh.weights), fresh.outputs))
    return _arrays(fresh)


def _arrays(mixture: Mixture) -> Arrays:
    arrays = {"weights": mixture.weights, "indicator": mixture.encoder.indicator}
    arrays |= {f"scaling.{name}": part for name, part in mixture.encoder.scaling._asdict().items()}
    for name, part in mixture.bank._asdict().items() if mixture.bank is not None else ():
        arrays |= {f"{name}{i}": own for i, own in enumerate(part)} if isinstance(part, tuple) else {name: part}
    if isinstance(mixture, ClassMixture) and mixture.net is not None:
        arrays |= {f"deep.{name}": getattr(mixture.net, name) for name in Net._fields[1:]}
    if isinstance(mixture, TargetMixture):
        arrays |= {"shape": mixture.shape, "rate": mixture.rate}
        arrays |= {f"targets.{name}": part for name, part in mixture.scaling._asdict().items()}
    return arrays


def _read(path: Path) -> tuple[Arrays, dict[str, Any]]:
    found = path.read_bytes()
    if not found.startswith(MAGIC):
        raise BGDError(f"{path} is not a learner that save() wrote")
    digest, _, content = found[len(MAGIC) :].partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise BGDError(f"{path} is damaged: its digest does not match its content; save it again, or use a copy")
    parts = unpack_arrays(content)
    header: dict[str, Any] = json.loads(parts.pop("header").tobytes())
    return parts, header


def _json(header: dict[str, Any]) -> str:
    try:
        return json.dumps(header)
    except TypeError as error:
        raise BGDError(
            f"labels and feature names can be saved as strings, numbers and booleans only: {error}"
        ) from None
