"""The learning rate of SGD decreases in steps, also after a resume."""

import pytest
import torch
from torch import nn

from bgd.errors import SettingError
from bgd.methods import create
from bgd.scenarios import scenario, shared_heads


def learner(**settings):
    net = nn.Linear(3, 2)
    with torch.no_grad():
        net.weight.fill_(0.1)
        net.bias.zero_()
    return create("sgd", net, shared_heads(1, 2), scenario("domain"), **settings)


def batches(count):
    g = torch.Generator().manual_seed(3)
    return [(torch.randn(8, 3, generator=g), torch.randint(2, (8,), generator=g)) for _ in range(count)]


def test_the_schedule_equals_torchs_step_lr():
    ours = learner(lr=0.5, momentum=0.9, decay_every=3, decay_by=10)
    reference = learner(lr=0.5, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(reference.optimizer, step_size=3, gamma=0.1)
    for x, y in batches(8):
        ours.observe(x, y)
        reference.observe(x, y)
        schedule.step()
    assert ours.optimizer.param_groups[0]["lr"] == pytest.approx(0.005)
    torch.testing.assert_close(ours.net.weight, reference.net.weight)


def test_a_resumed_run_continues_the_schedule():
    whole, first, second = (learner(lr=0.5, decay_every=2) for _ in range(3))
    data = batches(7)
    for batch in data:
        whole.observe(*batch)
    for batch in data[:3]:
        first.observe(*batch)
    second.load_state_dict(first.state_dict())
    for batch in data[3:]:
        second.observe(*batch)
    assert torch.equal(whole.net.weight, second.net.weight)


def test_the_learning_rate_is_constant_by_default():
    ours = learner(lr=0.5)
    for batch in batches(5):
        ours.observe(*batch)
    assert ours.optimizer.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decay_every": 0}, "decay_every=0"),
        ({"decay_every": 0.5}, "decay_every=0.5"),
        ({"decay_by": 0}, "decay_by=0"),
    ],
)
def test_invalid_settings_are_rejected(settings, message):
    with pytest.raises(SettingError, match=message):
        learner(**settings)
