"""The Laplace approximations against exact posteriors, exact Hessians, and the penalties of their definition."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from bgd.methods import Gaussian, Laplace, Outputs, create
from bgd.methods.common.likelihoods import Categorical
from bgd.methods.curvature.block_penalty import BlockPenalty
from bgd.methods.curvature.blocks import Kronecker
from bgd.methods.curvature.layers import join_columns
from bgd.methods.curvature.task_curvature import Samples, measure_curvature
from bgd.scenarios.heads import Heads
from bgd.scenarios.types import Batch

KINDS = ["ptl", "al", "ol"]
SHAPES = ["diagonal", "kronecker"]
EVERY = list(itertools.product(KINDS, SHAPES))


def vec(m: Tensor) -> Tensor:
    return m.T.reshape(-1)


def dense(penalty: BlockPenalty, name: str) -> Tensor:
    """Lambda of one group as a full matrix, on vec by columns."""
    parts = [torch.kron(*b) if isinstance(b, Kronecker) else torch.diag(vec(b.d)) for b in penalty.precision[name]]
    return sum(parts)


class LinearProblem:
    """y = W x + b + noise, some tasks of different sizes; one linear layer, two outputs."""

    outputs, features, std = 2, 3, 0.5

    def __init__(self, tasks: int = 3, orthogonal: bool = False) -> None:
        g = torch.Generator().manual_seed(3)
        self.sizes = [20, 35, 50, 25][:tasks]
        self.x = [torch.randn(n, self.features, generator=g, dtype=torch.float64) for n in self.sizes]
        if orthogonal:
            self.x = [torch.linalg.qr(x)[0] * (4 + i) for i, x in enumerate(self.x)]
        self.y = [torch.randn(n, self.outputs, generator=g, dtype=torch.float64) for n in self.sizes]
        self.bias = not orthogonal

    def design(self, tasks: int) -> Tensor:
        x = torch.cat(self.x[:tasks])
        return torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], dim=1) if self.bias else x

    def posterior(self, tasks: int, prior: float = 0.0) -> tuple[Tensor, Tensor]:
        """Mean (outputs, in + 1) and precision, by Bayes' rule on the data of all tasks at once."""
        x, y = self.design(tasks), torch.cat(self.y[:tasks])
        gram = x.T @ x / self.std**2 + prior * torch.eye(x.shape[1], dtype=x.dtype)
        mean = torch.linalg.solve(gram, x.T @ y / self.std**2).T
        return mean, torch.kron(gram, torch.eye(self.outputs, dtype=x.dtype))

    def learner(self, **settings) -> Laplace:
        net = nn.Linear(self.features, self.outputs, bias=self.bias).double()
        outputs = Outputs(Heads(self.outputs, (tuple(range(self.outputs)),)), likelihood=Gaussian(self.std))
        given = {"optimizer": "sgd", "lr": 0.06, "fisher_label": "exact", "train_size": self.sizes, **settings}
        return Laplace(net, outputs, **given)

    def teach(self, learner: Laplace, task: int) -> None:
        for _ in range(250):
            learner.observe(self.x[task], self.y[task])

    def end(self, learner: Laplace, task: int) -> None:
        """The data a second time, in uneven batches."""
        learner.end_task(Batch(*b) for b in zip(self.x[task].split(8), self.y[task].split(8), strict=True))


@pytest.mark.parametrize("prior", [0.0, 3.0])
@pytest.mark.parametrize("kind", ["ol", "al"])
def test_kronecker_laplace_of_a_linear_gaussian_model_is_its_exact_posterior(kind, prior):
    problem = LinearProblem()
    learner = problem.learner(kind=kind, curvature="kronecker", prior_precision=prior, memory=None)
    for t in range(3):
        problem.teach(learner, t)
        problem.end(learner, t)
        mean, precision = problem.posterior(t + 1, prior)
        assert torch.allclose(learner.penalty.anchor[""], mean, rtol=1e-8)
        assert torch.allclose(dense(learner.penalty, ""), precision, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["ol", "al"])
def test_diagonal_laplace_is_exact_too_where_the_hessian_is_diagonal(kind):
    problem = LinearProblem(orthogonal=True)
    learner = problem.learner(kind=kind, curvature="diagonal", memory=None)
    for t in range(3):
        problem.teach(learner, t)
        problem.end(learner, t)
        mean, precision = problem.posterior(t + 1)
        assert torch.allclose(learner.penalty.anchor["weight"], mean, rtol=1e-8)
        assert torch.allclose(dense(learner.penalty, "weight"), precision, rtol=1e-10, atol=1e-9)


def test_all_kinds_agree_on_a_quadratic_loss_for_two_tasks_and_per_task_differs_at_the_third():
    problem = LinearProblem()
    learners = [problem.learner(kind=kind, memory=None) for kind in KINDS]
    for learner in learners[1:]:
        learner.net.load_state_dict(learners[0].net.state_dict())
    for t in range(3):
        for learner in learners:
            problem.teach(learner, t)
        weights = [join_columns(list(learner.net.parameters())) for learner in learners]
        assert torch.allclose(weights[1], weights[2], rtol=1e-8)
        assert torch.allclose(weights[0], weights[2], rtol=1e-8) is (t < 2)
        for learner in learners:
            problem.end(learner, t)
        precisions = [dense(learner.penalty, "") for learner in learners]
        assert torch.allclose(precisions[0], precisions[2], rtol=1e-10, atol=1e-10)
        assert torch.allclose(precisions[1], precisions[2], rtol=1e-10, atol=1e-10)


def test_the_online_precision_grows_by_coefficient_times_the_summed_curvature():
    problem = LinearProblem()
    learner = problem.learner(coefficient=2.5)
    problem.end(learner, 0)
    x = problem.design(1)
    assert torch.allclose(dense(learner.penalty, ""), 2.5 * torch.kron(x.T @ x, torch.eye(2).double()) / problem.std**2)


def classifier() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 2, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 4)
    ).double()


TASK = Heads(4, ((0, 1), (2, 3)))


def images(task: int, n: int = 24, size: int = 8) -> list[Batch]:
    """Is the left half brighter, is the upper one?"""
    g = torch.Generator().manual_seed(task)
    x = torch.randn(n, 1, 4, 4, generator=g, dtype=torch.float64)
    half = x[..., :2] - x[..., 2:] if task == 0 else x[..., :2, :] - x[..., 2:, :]
    y = (half.sum(dim=(1, 2, 3)) > 0).long() + 2 * task
    return [Batch(x[i : i + size], y[i : i + size], task) for i in range(0, n, size)]


def masked_samples(task: int) -> list[Samples]:
    mask = torch.zeros(4, dtype=torch.bool)
    mask[2 * task : 2 * task + 2] = True
    return [Samples(b.x, b.y, mask) for b in images(task)]


def test_the_diagonal_is_that_of_the_exact_gauss_newton_matrix():
    """In the last layer the network is linear, so there it is the diagonal of the Hessian itself."""
    net = classifier()
    blocks, count = measure_curvature(net, Categorical(), masked_samples(0), "diagonal", "exact")
    assert count == 24
    batches = images(0)
    x, y = torch.cat([b.x for b in batches]), torch.cat([b.y for b in batches])
    frozen = {n: p.detach() for n, p in net.named_parameters()}

    def loss(weight: Tensor) -> Tensor:
        scores = functional_call(net, {**frozen, "6.weight": weight.reshape(4, 4)}, (x,))
        return nn.functional.cross_entropy(scores[:, :2], y, reduction="sum")

    hessian = torch.autograd.functional.hessian(loss, frozen["6.weight"].reshape(-1))
    assert torch.allclose(blocks["6.weight"].d.reshape(-1), hessian.diagonal(), rtol=1e-10, atol=1e-12)
    assert (blocks["6.weight"].d[2:] == 0).all()  # the other task's head


@pytest.mark.parametrize("shape", SHAPES)
def test_curvature_is_a_sum_over_samples_whatever_the_batch_size(shape):
    net, (samples,) = classifier(), [Samples(*images(0, size=24)[0][:2], None)]
    whole, count = measure_curvature(net, Categorical(), [samples], shape, "true")
    parts, same = measure_curvature(net, Categorical(), list(samples.batches(7)), shape, "true")
    twice, double = measure_curvature(net, Categorical(), [samples, samples], shape, "true")
    assert (count, same, double) == (24, 24, 48)
    for name, block in whole.items():
        d = torch.randn(len(block[-1]), block[0].shape[1], dtype=torch.float64)
        assert torch.allclose(parts[name].times(d), block.times(d), rtol=1e-10, atol=1e-13)
        assert torch.allclose(twice[name].times(d), 2 * block.times(d), rtol=1e-10, atol=1e-13)


def learner_for(kind, shape, net=None, heads=TASK, **settings) -> Laplace:
    given = {"train_size": [24, 30], "optimizer": "sgd", "lr": 0.05, "fisher_label": "exact", **settings}
    return Laplace(net or classifier(), Outputs(heads, "task"), kind=kind, curvature=shape, **given)


@pytest.mark.parametrize(("kind", "shape"), EVERY)
def test_a_step_descends_the_documented_objective(kind, shape):
    """Mean loss + R / N_t, with R written out from its definition and differentiated by autograd."""
    learner = learner_for(kind, shape, coefficient=1.7, memory=None)
    ends: list[dict[str, Tensor]] = []
    for t in range(2):
        for batch in images(t):
            learner.observe(*batch)
        learner.end_task(images(t))
        ends.append({n: p.detach().clone() for n, p in learner.net.named_parameters()})

    def curvature_at(task: int, weights: dict[str, Tensor]):
        net = classifier()
        net.load_state_dict(weights)
        return measure_curvature(net, Categorical(), masked_samples(task), shape, "exact")[0]

    # (end whose weights the penalty is around, end at which the curvature of task t is measured)
    positions = {"ptl": [(0, 0), (1, 1)], "ol": [(1, 0), (1, 1)], "al": [(1, 1), (1, 1)]}[kind]
    terms = [(ends[around], curvature_at(task, ends[at])) for task, (around, at) in enumerate(positions)]

    def penalty(weights: dict[str, Tensor]) -> Tensor:
        total = torch.zeros(()).double()
        for around, blocks in terms:
            for name, block in blocks.items():
                names = [name] if shape == "diagonal" else [n for n in weights if n.rpartition(".")[0] == name]
                total = total + 1.7 / 2 * block.quadratic(join_columns([weights[n] - around[n] for n in names]))
        return total

    with torch.no_grad():
        for p in learner.net.parameters():
            p.add_(0.1 * torch.randn_like(p))
    before = {n: p.detach().clone().requires_grad_() for n, p in learner.net.named_parameters()}
    assert learner.penalty.value() == pytest.approx(penalty(before).item(), rel=1e-10)
    batch = images(0)[1]
    scores = functional_call(learner.net, before, (batch.x,))[:, :2]
    (nn.functional.cross_entropy(scores, batch.y) + penalty(before) / 30).backward()
    learner.observe(*batch)
    for n, p in learner.net.named_parameters():
        assert torch.allclose(p, before[n] - 0.05 * before[n].grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("kind", "shape"), EVERY)
def test_with_coefficient_0_the_trajectory_is_sgds_bit_for_bit(kind, shape):
    net = classifier()
    plain = classifier()
    plain.load_state_dict(net.state_dict())
    learner = learner_for(kind, shape, net, coefficient=0.0)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.05)
    for t in range(2):
        for b in images(t):
            learner.observe(*b)
            optimizer.zero_grad()
            mask = torch.zeros(4, dtype=torch.bool)
            mask[2 * t : 2 * t + 2] = True
            nn.functional.cross_entropy(plain(b.x).masked_fill(~mask, -torch.inf), b.y).backward()
            optimizer.step()
        learner.end_task(images(t))
    for p, q in zip(net.parameters(), plain.parameters(), strict=True):
        assert torch.equal(p, q)


def contrary(task: int) -> list[Batch]:
    """The first label is x0 + x1 + x2 > 0; in the second task they have the opposite sign of x3 + x4 + x5, its label.

    Descent learns negative weights for the first half. A network for both tasks exists: larger weights for the second.
    """
    g = torch.Generator().manual_seed(task)
    x = torch.randn(200, 6, generator=g, dtype=torch.float64)
    if task == 0:
        x[:, 3:] = 0
    else:
        x[:, :3] = -0.7 * x[:, 3:]
    y = (x[:, 3 * task : 3 * task + 3].sum(1) > 0).long()
    return [Batch(*b, task) for b in zip(x.split(20), y.split(20), strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_it_forgets_less_than_sgd_and_least_with_kronecker_factors(kind):
    def accuracies(**settings) -> list[float]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)).double()
        outputs = Outputs(Heads(2, ((0, 1), (0, 1))))
        learner = Laplace(net, outputs, kind=kind, optimizer="sgd", lr=0.2, train_size=200, **settings)
        for t in range(2):
            for _ in range(15):
                for b in contrary(t):
                    learner.observe(*b)
            learner.end_task(contrary(t))
        right = [[learner.predict(b.x).argmax(1) == b.y for b in contrary(t)] for t in range(2)]
        return [torch.cat(r).double().mean().item() for r in right]

    sgd, diagonal, kronecker = (
        accuracies(**s) for s in ({"coefficient": 0.0}, {"curvature": "diagonal"}, {"curvature": "kronecker"})
    )
    assert min(sgd[1], diagonal[1], kronecker[1]) > 0.95
    assert sgd[0] < 0.3  # worse than chance: the second task has opposite labels
    assert diagonal[0] > sgd[0] + 0.2
    assert kronecker[0] > diagonal[0] + 0.1


@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_and_dropout_are_measured_in_evaluation_mode(shape):
    net = nn.Sequential(nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Dropout(), nn.Linear(18, 4))
    learner = learner_for("ol", shape, net.double())
    for t in range(2):
        for b in images(t):
            learner.observe(*b)
        statistics = net[1].running_mean.clone()
        learner.end_task(images(t))
        assert torch.equal(net[1].running_mean, statistics)
        assert net.training
    assert learner.penalty.value() == 0
    learner.observe(*images(1)[0])
    assert learner.penalty.value() > 0


def test_any_network_has_a_diagonal_and_kronecker_names_the_unsupported_layer():
    net = nn.Sequential(nn.Flatten(), nn.LayerNorm(16), nn.Linear(16, 4)).double()
    learner = learner_for("ol", "diagonal", net)
    learner.end_task(images(0))
    assert set(learner.penalty.precision) == {"1.weight", "1.bias", "2.weight", "2.bias"}
    with pytest.raises(ValueError, match=r"'1.weight' of LayerNorm"):
        learner_for("ol", "kronecker", net)


def test_approximate_laplace_weights_its_memory_as_the_whole_task():
    torch.manual_seed(0)
    net = classifier()
    everything, some = (learner_for("al", "diagonal", net, memory=m, lr=0.0) for m in (None, 1))
    same = [Batch(b.x[:1].expand(8, -1, -1, -1), b.y[:1].expand(8), b.task) for b in images(0)[:1]] * 3
    for learner in (everything, some):
        learner.end_task(same)
        learner.end_task(images(1))
    assert [len(learner.old_samples[0]["x"]) for learner in (everything, some)] == [24, 1]
    for name, blocks in everything.penalty.precision.items():
        assert torch.allclose(some.penalty.precision[name][0].d, blocks[0].d, rtol=1e-10)


def test_approximate_laplace_uses_old_data_with_the_labels_of_its_task():
    outputs = Outputs(Heads(4, ((0, 1, 2, 3),)), "batch")  # the labels trick
    learner = Laplace(classifier(), outputs, kind="al", train_size=24, fisher_label="exact")
    for t in range(2):
        for b in images(t, size=24):
            learner.observe(b.x, b.y)
        learner.end_task(images(t, size=24))
    assert learner.old_samples[0]["mask"][0].tolist() == [True, True, False, False]
    assert learner.old_samples[1]["mask"][0].tolist() == [False, False, True, True]


@pytest.mark.parametrize("kind", ["ptl", "ol"])
def test_other_kinds_store_no_data(kind):
    learner = learner_for(kind, "diagonal")
    learner.end_task(images(0))
    assert learner.old_samples == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "online"}, "kind='online': choose one of ptl, al, ol"),
        ({"curvature": "full"}, "curvature='full': choose one of diagonal, kronecker"),
        ({"coefficient": -1.0}, "coefficient=-1.0"),
        ({"prior_precision": -1.0}, "prior_precision=-1.0"),
        ({"memory": 0}, "memory=0"),
        ({"memory": 1.5}, "memory=1.5"),
        ({"fisher_label": "argmax"}, "'argmax': choose one of"),
        ({"train_size": None}, "set train_size"),
    ],
)
def test_invalid_settings_are_rejected(settings, message, scenarios, heads_of, make_net):
    scenario = scenarios["task"]
    with pytest.raises(ValueError, match=message):
        create("laplace", make_net(6), heads_of(scenario), scenario, **{"train_size": 96, **settings})


@pytest.mark.parametrize(("kind", "shape"), EVERY)
def test_ending_a_task_without_its_data_is_rejected(kind, shape):
    learner = learner_for(kind, shape)
    with pytest.raises(ValueError, match="pass end_task the batches"):
        learner.end_task()
