import itertools
import math

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap

from bgd.nets import MLP


def test_global_generator_is_untouched_and_seeds_decide():
    before = torch.get_rng_state()
    a, b, c = MLP(6, 3, (5,), seed=1), MLP(6, 3, (5,), seed=1), MLP(6, 3, (5,), seed=2)
    MLP(6, 3, (5,), init="torch", seed=1)
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert not torch.equal(a.head.weight, c.head.weight)


def test_torch_init_equals_a_plain_torch_net():
    with torch.random.fork_rng():
        torch.manual_seed(7)
        plain = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
    x = torch.linspace(-1, 1, 12).reshape(2, 6)
    assert torch.equal(MLP(6, 3, (5,), init="torch", seed=7)(x), plain(x))


@pytest.mark.parametrize("widths", [(), (4,), (4, 5, 6)])
def test_any_widths(widths):
    net = MLP((1, 4, 4), 3, widths)
    sizes = [16, *widths, 3]
    expected = sum(a * b + b for a, b in itertools.pairwise(sizes))
    assert sum(p.numel() for p in net.parameters()) == expected
    assert net(torch.zeros(2, 1, 4, 4)).shape == (2, 3)
    assert net(torch.zeros(0, 16)).shape == (0, 3)


@pytest.mark.parametrize("shape", [(2, 1, 28, 28), (2, 784), (1024,), (2, 32, 31)])
def test_wrong_input_sizes_are_rejected_with_both_sizes(shape):
    with pytest.raises(ValueError, match=r"takes 1024 inputs.*" + str(shape[0])):
        MLP((1, 32, 32), 10)(torch.zeros(shape))


@pytest.mark.parametrize("sizes", [(0, 10, (5,)), (4, 0, (5,)), (4, 10, (5, -1))])
def test_empty_layers_are_rejected(sizes):
    with pytest.raises(ValueError, match="at least one unit"):
        MLP(*sizes)


def test_runs_under_vmap_over_networks_and_over_samples():
    nets = [MLP((1, 4, 4), 3, (5,), seed=s) for s in range(3)]
    x = torch.randn(6, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    params, buffers = stack_module_state(nets)
    many = vmap(lambda p, b: functional_call(nets[0], (p, b), (x,)))(params, buffers)
    torch.testing.assert_close(many, torch.stack([net(x) for net in nets]))

    one = dict(nets[0].named_parameters())
    single = vmap(lambda image: functional_call(nets[0], one, (image.unsqueeze(0),)).squeeze(0))(x)
    torch.testing.assert_close(single, nets[0](x))


def test_compiles_without_graph_breaks():
    net = MLP((1, 4, 4), 3, (5,))
    x = torch.ones(2, 1, 4, 4)
    torch.testing.assert_close(torch.compile(net, backend="eager", fullgraph=True)(x), net(x))


def test_heads_are_outputs_only():
    assert MLP(math.prod((1, 4, 4)), 5 * 2, (3,)).head.out_features == 10
