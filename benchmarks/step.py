"""What a BGD step costs, in units of an SGD step of the same network on the same batch.

Every number is a ratio of medians: all columns of a row run in one process, in turns, so that a busy machine slows
them alike. Run with ``make bench``; ``--help`` lists the settings. ``--nets lenet vgg16 vgg16-bn`` gives the table of
the convolutional networks: there the library's own choice is the loop, and these columns show why.

Columns:
    plain     Algorithm 1 written down plainly: torch.randn, a loop over the samples, the textbook formulae.
    loop      ``BGD.step(closure)``, with each kind of noise.
    eager     ``BGD.batched(..., compile=False)``: all samples in one pass through vmap.
    batched   ``BGD.batched(...)``, compiled, the chunk chosen by itself, with each kind of noise.
    last      (convolutions only) the loop with hash noise, and one SGD step, in ``channels_last`` layout.
    chunk 2   two networks at a time: MLP compiled with hashed noise, convolutions uncompiled.
    bfloat16  (MLP only) batched with hashed noise and all products in bfloat16.
    IVON      the optimizer of ivon-opt with the same number of samples (if it is installed).
    noise     drawing the step's noise alone, compiled hash.
    floor     MLP: the matrix products alone: no noise, no sampling, no activation functions, no update.
              Convolutions: K passes forward and backward, one network after the other.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Collection
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from bgd import BGD
from bgd.nets import VGG, InBfloat16, LeNet
from bgd.optim import noise

BATCH = 128
Step = Callable[[], object]

CONVOLUTIONAL: dict[str, Callable[[], nn.Module]] = {
    "lenet": LeNet,
    "vgg16": VGG,
    "vgg16-bn": lambda: VGG(batch_norm=True),
}


def mlp(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(1024, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


class Plain:
    """Algorithm 1 as one would first write it."""

    def __init__(self, model: nn.Module, std_init: float, mc_samples: int) -> None:
        self.params = list(model.parameters())
        self.mean = [p.detach().clone() for p in self.params]
        self.std = [torch.full_like(p, std_init) for p in self.params]
        self.mc_samples = mc_samples

    def step(self, closure: Callable[[], Tensor]) -> None:
        """One pass through the algorithm's loop."""
        e_g = [torch.zeros_like(m) for m in self.mean]
        e_g_eps = [torch.zeros_like(m) for m in self.mean]
        for _ in range(self.mc_samples):
            eps = [torch.randn_like(m) for m in self.mean]
            with torch.no_grad():
                for p, m, s, e in zip(self.params, self.mean, self.std, eps, strict=True):
                    p.copy_(m + e * s)
                    p.grad = None
            closure()
            for i, p in enumerate(self.params):
                assert p.grad is not None
                e_g[i] += p.grad / self.mc_samples
                e_g_eps[i] += p.grad * eps[i] / self.mc_samples
        with torch.no_grad():
            for i, p in enumerate(self.params):
                s = self.std[i]
                self.mean[i] = self.mean[i] - s**2 * e_g[i]
                self.std[i] = s * torch.sqrt(1 + (0.5 * s * e_g_eps[i]) ** 2) - 0.5 * s**2 * e_g_eps[i]
                p.copy_(self.mean[i])


def matrix_products(width: int, mc_samples: int) -> Step:
    """All products of K forward and backward passes of the MLP, and nothing else."""
    sizes = [(1024, width), (width, width), (width, 10)]
    weights = [torch.randn(mc_samples, out, inp) for inp, out in sizes]
    inputs = [torch.randn(BATCH, 1024).expand(mc_samples, BATCH, 1024)]
    inputs += [torch.randn(mc_samples, BATCH, out) for _, out in sizes[:-1]]
    deltas = [torch.randn(mc_samples, BATCH, out) for _, out in sizes]

    def products() -> None:
        for x, w in zip(inputs, weights, strict=True):
            torch.bmm(x, w.transpose(1, 2))
        for d, w in list(zip(deltas, weights, strict=True))[1:]:
            torch.bmm(d, w)
        for d, x in zip(deltas, inputs, strict=True):
            torch.bmm(d.transpose(1, 2), x)

    return products


def columns(
    make: Callable[[], nn.Module], width: int | None, mc_samples: int, skip: Collection[str]
) -> dict[str, Step]:
    """A function per column, each with a model of its own."""
    x, y = torch.randn(BATCH, 1024) if width else torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))

    def closure_of(model: nn.Module) -> Callable[[], Tensor]:
        def closure() -> Tensor:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            loss.backward()
            return loss

        return closure

    def objective(net: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(net(x), y, reduction="sum")

    def sgd_of(model: nn.Module) -> Step:
        sgd, sgd_closure = torch.optim.SGD(model.parameters(), 1e-9), closure_of(model)

        def sgd_step() -> None:
            sgd.zero_grad()
            sgd_closure()
            sgd.step()

        return sgd_step

    steps: dict[str, Step] = {"SGD": sgd_of(make())}
    model = make()
    plain, plain_closure = Plain(model, 0.01, mc_samples), closure_of(model)
    steps["plain"] = lambda: plain.step(plain_closure)
    for kind in noise.KINDS:
        model = make()
        loop, loop_closure = (
            BGD.paper(model.parameters(), 0.01, mc_samples=mc_samples, std_max="init", noise=kind),
            closure_of(model),
        )
        steps[f"loop, {kind}"] = lambda loop=loop, closure=loop_closure: loop.step(closure)
    ways = [("eager", "torch", False, mc_samples)]
    ways += [(f"batched, {kind}", kind, True, None) for kind in noise.KINDS]
    ways += (
        [("chunk 2", "hash", True, 2), ("bfloat16", "hash", True, None)] if width else [("chunk 2", "torch", False, 2)]
    )
    for name, kind, compiled, chunk_size in ways:
        model = InBfloat16(make()) if name == "bfloat16" else make()
        if any(isinstance(m, nn.BatchNorm2d) for m in model.modules()):
            continue  # vmap cannot run it: BGD.batched would take the loop, after a warning
        optimizer = BGD.paper(model.parameters(), 0.01, mc_samples=mc_samples, std_max="init", noise=kind)
        batched = optimizer.batched(model, objective, compile=compiled, chunk_size=chunk_size)
        steps[name] = lambda step=batched: step(x, y)
    if width is None:
        model = make().to(memory_format=torch.channels_last)
        last, last_closure = (
            BGD.paper(model.parameters(), 0.01, mc_samples=mc_samples, std_max="init", noise="hash"),
            closure_of(model),
        )
        steps["loop, last"] = lambda: last.step(last_closure)
        steps["SGD, last"] = sgd_of(make().to(memory_format=torch.channels_last))
    try:
        import ivon
    except ImportError:
        pass
    else:
        model = make()
        other, other_closure = ivon.IVON(model.parameters(), 1e-6, ess=60_000, mc_samples=mc_samples), closure_of(model)

        def ivon_step() -> None:
            for _ in range(mc_samples):
                with other.sampled_params(train=True):
                    other.zero_grad()
                    other_closure()
            other.step()

        steps["IVON"] = ivon_step
    size = sum(p.numel() for p in model.parameters())
    keys = [noise.fold(0, k) for k in range(mc_samples)]
    steps["noise"] = lambda: noise.normal("hash", keys, size, torch.empty(0))
    if width is not None:
        steps["floor"] = matrix_products(width, mc_samples)
    else:
        network = make()
        pass_through = closure_of(network)

        def passes() -> None:
            for _ in range(mc_samples):
                network.zero_grad()
                pass_through()

        steps["floor"] = passes
    return {name: step for name, step in steps.items() if name not in skip}


def medians(steps: dict[str, Step], rounds: int) -> dict[str, float]:
    """Median seconds of each column, taking turns; on one thread, processor seconds, which others cannot lengthen."""
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    for step in steps.values():
        step()
        step()
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            start = clock()
            step()
            seconds[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", nargs="*", default=["mlp", "lenet"], choices=["mlp", *CONVOLUTIONAL])
    parser.add_argument("--widths", type=int, nargs="*", default=[200, 400, 1000], help="of the MLPs")
    parser.add_argument("--samples", type=int, nargs="*", default=[2, 4, 10])
    parser.add_argument("--skip", nargs="*", default=[], help='columns to leave out, such as "plain" "batched, torch"')
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--out", type=Path, help="JSON file for the raw times")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    nets: list[tuple[str, Callable[[], nn.Module], int | None]] = []
    for net in arguments.nets:
        if net == "mlp":
            nets += [(f"MLP 1024-{w}-{w}-10", lambda w=w: mlp(w), w) for w in arguments.widths]
        else:
            nets.append((net, CONVOLUTIONAL[net], None))
    console = Console(width=170)
    title = f"One step, batch {BATCH}, in SGD steps (torch {torch.__version__}, {arguments.threads} threads)"
    found: dict[tuple[str, int], dict[str, float]] = {}
    for net, make, width in nets:
        for mc_samples in arguments.samples:
            torch.compiler.reset()
            rounds = arguments.rounds if width is not None and width < 1000 else max(arguments.rounds // 3, 3)
            found[net, mc_samples] = medians(columns(make, width, mc_samples, arguments.skip), rounds)
            console.print(f"{net}, K = {mc_samples}: done", style="dim", highlight=False)
    if arguments.out is not None:
        rows = [{"net": net, "samples": k, "seconds": row} for (net, k), row in found.items()]
        setting = {"torch": torch.__version__, "threads": arguments.threads, "rounds": arguments.rounds}
        arguments.out.write_text(json.dumps({"setting": setting, "rows": rows}, indent=1) + "\n")
    names = list(dict.fromkeys(name for row in found.values() for name in row if name != "SGD"))
    table = Table(title=title)
    for heading in ("network", "K", "SGD, ms", *names):
        table.add_column(heading, justify="left" if heading == "network" else "right")
    for (net, mc_samples), row in found.items():
        ratios = [f"{row[name] / row['SGD']:.2f}" if name in row else "-" for name in names]
        table.add_row(net, str(mc_samples), f"{row['SGD'] * 1e3:.2f}", *ratios)
    console.print(table)


if __name__ == "__main__":
    main()
