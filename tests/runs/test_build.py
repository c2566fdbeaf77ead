"""Streams, networks and learners, as a configuration declares them."""

import pytest
import torch
from small_runs import DATA, DIGITS_32, DISCRETE, DRIFTING, conv_run, small
from torch import nn

from bgd.methods.common.base import generator_for
from bgd.nets import MLP
from bgd.runs import RunConfig, RunError, run
from bgd.runs.build import build_learner, build_net, build_stream
from bgd.runs.config import NetConfig


@pytest.mark.parametrize(
    ("name", "kind", "layers", "norms"),
    [
        ("lenet", "LeNet", 4, 0),
        ("zenke", "ZenkeNet", 6, 0),
        ("vgg16", "VGG", 14, 0),
        ("vgg16-bn", "VGG", 14, 13),
        ("vgg11", "VGG", 9, 0),
        ("vgg11-bn", "VGG", 9, 8),
    ],
)
def test_nets_by_name(name, kind, layers, norms):
    net = build_net(NetConfig(name=name, init="he"), (3, 32, 32), 10, seed=3)
    assert type(net).__name__ == kind
    assert sum(isinstance(m, nn.Conv2d | nn.Linear) for m in net.modules()) == layers
    assert sum(isinstance(m, nn.BatchNorm2d) for m in net.modules()) == norms
    assert not net.head.bias.any()
    again = build_net(NetConfig(name=name, init="he"), (3, 32, 32), 10, seed=3)
    assert torch.equal(net.head.weight, again.head.weight)


def test_images_too_small_for_the_net_are_refused(tmp_path):
    config = conv_run("sgd", "vgg16")
    with pytest.raises(RunError, match=r"net 'vgg16': images of shape \(3, 16, 16\) are too small for a VGG: pad"):
        run(config, tmp_path)


def test_a_batch_of_one_image_is_refused_for_batch_norm_only():
    leaves_one = {"data": DIGITS_32 | {"train": 33}, "tasks": {"kind": "whole"}, "stream": {"batch_size": 8}}
    config = conv_run("sgd", "vgg16-bn", **leaves_one)
    with pytest.raises(RunError, match=r"33 images in batches of 8 leave one: choose another stream.batch_size"):
        build_learner(config, build_stream(config))
    for fine in (
        conv_run("sgd", "vgg16", **leaves_one),
        conv_run("sgd", "vgg16-bn", **leaves_one | {"data": DIGITS_32 | {"train": 34}}),
    ):
        build_learner(fine, build_stream(fine))


def test_augmentation_reaches_every_kind_of_stream():
    crop_flip = {"batch_size": 8, "augment": {"crop": 4, "flip": True}}
    for method, scenario, stream in (
        ("sgd", "task", {}),
        ("offline", "task", {}),
        ("sgd", "continuous task-agnostic", {"kind": "continuous", "iterations": 10}),
        ("sgd", "continuous task-agnostic", {"kind": "drifting", "iterations": 10}),
    ):
        config = conv_run(method, "zenke", scenario=scenario, stream=crop_flip | stream)
        assert (build_stream(config).augment.crop, build_stream(config).augment.flip) == (4, True)
    assert build_stream(conv_run("sgd", "zenke", stream={})).augment is None


def test_rotated_tasks_and_a_single_task(tmp_path):
    rotated = small("sgd", {"epochs": 1}, "domain", tasks={"kind": "rotate", "degrees": [0, 45]})
    assert run(rotated, tmp_path / "a").task_names == ["0 degrees", "45 degrees"]
    single = small("sgd", {"epochs": 1}, "domain", tasks={"kind": "whole"})
    assert run(single, tmp_path / "b").metrics.keys() == {"anytime_accuracy"}


def test_padding_and_limits_reach_the_network():
    config = small("sgd", {"epochs": 1}, "domain", data=DATA | {"pad": 2})
    assert build_stream(config).tasks.shape == (1, 12, 12)
    assert len(build_stream(config).tasks[0].train) == 300


def test_offline_on_a_drift_trains_on_all_its_tests_at_once():
    drift, joint = (build_stream(small(m, DRIFTING, "continuous task-agnostic")) for m in ("sgd", "offline"))
    assert joint.tasks.names == drift.tasks.names
    one_epoch = range(-(-300 * DRIFTING["moments"] // DRIFTING["batch_size"]))  # 40 batches of 16 are less than one
    assert len(joint) == len(one_epoch)
    shown = torch.cat([joint.batch(i).x for i in one_epoch]).flatten(1)
    everything = torch.cat([b.x for t in range(3) for b in drift.train_batches(t, 100)]).flatten(1)
    torch.testing.assert_close(shown.sum(1).sort().values, everything.sum(1).sort().values)


def test_noise_is_independent_of_the_initial_weights():
    config = small("bbb", DISCRETE, "domain")
    stream = build_stream(config)
    learner = build_learner(config, stream)
    for p in learner.net.parameters():
        if p.ndim > 1:
            eps = torch.randn(p.shape, generator=generator_for(learner.net, config.seed))
            assert abs(torch.corrcoef(torch.stack([p.detach().flatten(), eps.flatten()]))[0, 1]) < 0.2


@pytest.mark.parametrize("moments", [2, 5])
def test_train_size_of_a_drift_does_not_depend_on_how_often_it_is_tested(moments):
    config = RunConfig(
        method="bbb",
        setup={
            "scenario": "continuous task-agnostic",
            "data": {"name": "digits", "train": 200, "test": 50},
            "stream": {"kind": "drifting", "iterations": 20, "moments": moments},
        },
    )
    assert build_learner(config, build_stream(config)).train_size == 200


def task_run(**net):
    return small(
        "bgd", DISCRETE, "task", {"std_init": 0.05}, tasks={"kind": "split", "count": 5}, net={"widths": [24], **net}
    )


def test_in_task_learning_each_head_starts_as_a_layer_of_its_own():
    nets = {}
    for heads in ("own", "joined"):
        config = task_run(heads=heads)
        nets[heads] = build_learner(config, build_stream(config)).net
    one_layer = MLP((1, 8, 8), 10, (24,), seed=5)
    assert torch.equal(nets["joined"].head.weight, one_layer.head.weight)
    assert nets["own"].head.bias.var() > 2 * nets["joined"].head.bias.var()
    in_class = small("bgd", DISCRETE, "class", {"std_init": 0.05}, tasks={"kind": "split", "count": 5})
    assert torch.equal(build_learner(in_class, build_stream(in_class)).net.head.weight, one_layer.head.weight)


def test_training_one_head_leaves_the_others_as_separate_layers_would_be():
    """One layer of all heads computes what a layer for each task does: no mean and no std of another head moves."""
    config = task_run()
    stream = build_stream(config)
    learner = build_learner(config, stream)
    head = learner.net.head
    states = [learner.optimizer.state[p] for p in head.parameters()]
    before = [{key: state[key].clone() for key in ("mean", "std")} for state in states]
    for i in range(2):  # of the first task
        learner.observe(*stream.batch(i))
    for state, old in zip(states, before, strict=True):
        for key in ("mean", "std"):
            assert not torch.equal(state[key][:2], old[key][:2])
            assert torch.equal(state[key][2:], old[key][2:])


def test_a_member_of_a_mix_has_its_own_augmentation():
    mix = [{"name": "digits", "classes": (0, 1)}, {"name": "digits", "classes": (2, 3), "augment": {"crop": 2}}]
    config = small("sgd", DISCRETE, "domain", data={"mix": mix, "train": 40, "test": 20}, tasks={"kind": "mix"})
    assert [one and one.crop for one in build_stream(config).augment] == [None, 2]
