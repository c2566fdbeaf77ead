"""Which outputs belong to which task."""

import pytest

from bgd.scenarios import Heads, ScenarioError


@pytest.mark.parametrize(
    ("outputs", "tasks", "message"),
    [
        (2, ((0, 2),), r"outputs \(0, 2\)"),
        (2, ((-1,),), r"outputs \(-1,\)"),
        (2, ((0, 0),), r"outputs \(0, 0\)"),
        (2, ((),), r"outputs \(\)"),
        (2, (), "no task"),
        (3, ((0, 1), (1, 2)), "tasks 0 and 1 both use output 1"),
    ],
)
def test_invalid_heads_are_rejected(outputs, tasks, message):
    with pytest.raises(ScenarioError, match=message):
        Heads(outputs, tasks)
