"""The gallery, run in small: what each example says must hold, and each draws its picture."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def picture(tmp_path: Path):
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    file = tmp_path / "picture.png"
    with threadpool_limits(1):  # on a busy machine the threads of small products wait for each other
        yield str(file)
    assert file.read_bytes().startswith(b"\x89PNG")


def test_rewired_sensors_are_noticed_and_learned_again(picture: str) -> None:
    found = example("drifting_sensors").main(["--out", picture, "--rows", "2200"])
    (alarm,) = found["alarms"]
    assert 1797 <= alarm < 1900, "one alarm, soon after the sensors were rewired, and no false one"
    assert found["right"][1400:1780].mean() > 0.9
    assert found["right"][2050:].mean() > found["right"][1790:1850].mean() + 0.2
    assert found["doubt"][113:118].mean() > 1.5 * found["doubt"][100:110].mean(), "it knows that it does not know"


def test_the_exact_head_keeps_the_classes_that_networks_lose(picture: str) -> None:
    found = example("new_classes").main(["--out", picture, "--epochs", "2", "--units", "300"])
    assert found["exact head"][-1] > 0.9
    assert found["BGD + labels trick"][-1] > found["BGD"][-1] + 0.1
    assert max(found["BGD"][-1], found["Adam"][-1]) < found["exact head"][-1] - 0.3


def test_a_pretrained_network_learns_new_classes(picture: str) -> None:
    found = example("fine_tuning").main(["--out", picture, "--epochs", "2"])
    old, new = found["exact head"]
    assert min(old, new) > 0.8
    assert all(sum(found[name]) < old + new - 0.2 for name in found if name != "exact head")


def test_merging_and_unlearning_are_exact(picture: str) -> None:
    found = example("merge_and_unlearn").main(["--out", picture, "--units", "100"])
    assert max(found["only 0 to 4"], found["only 5 to 9"]) < 0.55 < 0.85 < found["merged"]
    assert max(found["distance, merged"], found["distance, unlearned"]) < 1e-8
