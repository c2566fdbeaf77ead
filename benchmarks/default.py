"""What a step of BGD costs by default, in SGD steps of the same network on the same batch.

Every number is a ratio of medians: all columns of a row run in one process, in turns, so that a busy machine slows them
alike. ``--out FILE`` keeps the raw times.

Columns:
    Adam         torch's own.
    BGD          ``BGD(model.parameters())``: one pass, noise of its own for each example.
    compiled     the same with ``compile=True``: the update is one pass over memory.
    float32      BGD and compiled with the products of the noise in float32 too, as on a processor without bfloat16.
    two passes   forward and backward twice: the products that the one-pass estimator needs, and nothing else.
    memory       the most memory that BGD's step holds, in units of the parameters' size, activations aside (for MLPs).
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from bgd import BGD
from bgd.optim.estimators import precision
from step import CONVOLUTIONAL, medians, mlp

Step = Callable[[], object]
Batch = tuple[Tensor, Tensor]


class Transformer(nn.Module):
    """Four encoder layers of width 128 over 32 tokens."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """From tokens to logits."""
        out: Tensor = self.head(self.encoder(self.embedding(x)).mean(1))
        return out


NETS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    **{f"mlp-{w}": (lambda w=w: mlp(w), lambda: torch.randn(128, 1024)) for w in (200, 400, 1000)},
    **{name: (make, lambda: torch.randn(64, 3, 32, 32)) for name, make in CONVOLUTIONAL.items()},
    "transformer": (Transformer, lambda: torch.randint(1000, (64, 32))),
}


def training_step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Batch, passes: int = 1) -> Step:
    """A step of an ordinary training loop; with more than one pass, forward and backward are repeated."""
    x, y = batch

    def step() -> None:
        for _ in range(passes):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def in_float32(step: Step) -> Step:
    """A step whose noise is multiplied in float32."""

    def run() -> None:
        ours = precision.multiplies_bfloat16
        precision.multiplies_bfloat16 = bool
        try:
            step()
        finally:
            precision.multiplies_bfloat16 = ours

    return run


def columns(make: Callable[[], nn.Module], batch: Batch) -> dict[str, Step]:
    """A function per column, each with a model of its own."""

    def sgd(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), 1e-9)

    optimizers: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
        "SGD": sgd,
        "Adam": lambda model: torch.optim.Adam(model.parameters(), 1e-9),
        "BGD": lambda model: BGD(model.parameters()),
        "compiled": lambda model: BGD(model.parameters(), compile=True),
    }
    steps = {name: training_step(model := make(), of(model), batch) for name, of in optimizers.items()}
    for name in ("BGD", "compiled"):
        steps[f"{name}, float32"] = in_float32(steps[name])
    model = make()
    return {**steps, "two passes": training_step(model, sgd(model), batch, passes=2)}


def peak_memory(make: Callable[[], nn.Module], batch: Batch) -> float:
    """In units of the parameters' size, without what the same loop holds without an optimizer's state and gradients."""
    model = make()
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        step = training_step(model, BGD(model.parameters()), (batch[0][:1], batch[1][:1]))
        for _ in range(3):
            step()
    events = [e for e in prof.profiler.kineto_results.events() if e.name() == "[memory]"]
    held, most = size, size
    for _, nbytes in sorted((e.start_ns(), e.nbytes()) for e in events):
        held += nbytes
        most = max(most, held)
    return most / size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", nargs="*", default=list(NETS), choices=list(NETS))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--out", type=Path, help="JSON file for the raw times")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    console, rows = Console(width=120), {}
    table = Table(title=f"One step in SGD steps (torch {torch.__version__}, {arguments.threads} threads)")
    names = ["Adam", "BGD", "compiled", "BGD, float32", "compiled, float32", "two passes"]
    for heading in ("network", "SGD, ms", *names, "memory"):
        table.add_column(heading, justify="left" if heading == "network" else "right")
    for net in arguments.nets:
        make, inputs = NETS[net]
        x = inputs()
        batch = x, torch.randint(10, (len(x),))
        found = medians(columns(make, batch), arguments.rounds if net.startswith("mlp") else arguments.rounds // 4)
        memory = peak_memory(make, batch) if net.startswith("mlp") else None
        rows[net] = {"seconds": found, "memory": memory}
        ratios = [f"{found[name] / found['SGD']:.2f}" for name in names]
        table.add_row(net, f"{found['SGD'] * 1e3:.2f}", *ratios, f"{memory:.1f}" if memory else "-")
        console.print(f"{net}: done", style="dim", highlight=False)
    console.print(table)
    if arguments.out is not None:
        setting = {"torch": torch.__version__, "threads": arguments.threads, "machine": platform.processor()}
        arguments.out.write_text(json.dumps({"setting": setting, "nets": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
