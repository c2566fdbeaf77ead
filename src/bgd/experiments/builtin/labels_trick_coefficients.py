"""Which coefficients did the paper use with the labels trick? It does not give them; these are all published ones."""

from __future__ import annotations

from bgd.experiments.builtin import hsu, labels_trick, split_mnist
from bgd.experiments.builtin.presets import STAND_IN, paper, smoke
from bgd.experiments.declaration import Experiment
from bgd.runs.config import Setup

COLUMNS = {f"as for {kind} learning": kind for kind in ("class", "domain", "task")}
PENALTIES = hsu.penalties("split", 0.001, COLUMNS)

EXPERIMENT = Experiment(
    name="labels-trick-coefficients",
    title="The labels trick with the coefficients of each scenario, Split MNIST",
    shows="A penalty's accuracy with the labels trick hangs on its coefficient, which the paper does not give. Each "
    "row takes the coefficients that Hsu et al. found for class, domain and task learning without the trick; the "
    "paper's one value is shown beside all three.",
    source="Table 'Results for labels trick on Split MNIST', the column with the trick",
    setup=split_mnist.SETUP.model_copy(update={"scenario": "class", "loss_over": "batch"}),
    columns={column: Setup() for column in COLUMNS},
    rows=PENALTIES,
    seeds=(2019, 2020, 2021),
    paper={row: dict.fromkeys(COLUMNS, labels_trick.EXPERIMENT.paper[row][labels_trick.WITH]) for row in PENALTIES},
    candidates=True,
    presets={
        "smoke": smoke(expected_time="5 s"),
        "quick": split_mnist.QUICK,
        "paper": paper(expected_time="15 min", bgd=()),
    },
    notes=(
        "Not a search: no coefficient was tried but those published. The table of the labels trick keeps those of "
        "class learning, whatever this one shows.",
        STAND_IN,
    ),
)
