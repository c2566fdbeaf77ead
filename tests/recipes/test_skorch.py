"""skorch in a pipeline and a grid search of scikit-learn."""

import pytest

pytest.importorskip("skorch")
pytest.importorskip("sklearn")

import copy
import pickle

import numpy as np
import torch

from recipes import data, run

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def test_a_pipeline_in_a_grid_search() -> None:
    from sklearn.base import clone

    x, y = data(256)
    names = run("skorch", features=x.numpy(), labels=y.numpy())
    search = names["search"]
    assert search.best_score_ > 0.6
    assert names["p"].probs.shape == (256, 3)
    pipeline = clone(search.best_estimator_).fit(x.numpy(), y.numpy())
    assert pipeline.score(x.numpy(), y.numpy()) > 0.6
    for copied in (copy.deepcopy(pipeline), pickle.loads(pickle.dumps(pipeline))):
        assert np.array_equal(copied.predict(x.numpy()), pipeline.predict(x.numpy()))
    net = pipeline.named_steps["neuralnetclassifier"]
    before = net.optimizer_.steps
    net.partial_fit(x.numpy()[:128], y.numpy()[:128])
    assert net.optimizer_.steps > before
    assert torch.equal(net.optimizer_.state[net.module_[0].weight]["mean"], net.module_[0].weight)
