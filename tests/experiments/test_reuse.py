"""The same work is done once, and only the same work."""

import json
from pathlib import Path

import pytest
import torch

from bgd.experiments import find
from bgd.experiments.pack import pack
from bgd.experiments.plan import comparison_folder, plan
from bgd.experiments.reuse import LABELS, find_reusable, reuse_results, work
from bgd.experiments.storage import PACKED, Declaration, collect, declare, read_declaration
from bgd.runs.config import RunConfig
from bgd.runs.folder import finished, read_config, read_result
from bgd.runs.run import run


def declared(place: Path, name: str, **choice: object) -> tuple[list[RunConfig], list[Path]]:
    experiment = find(name)
    configs = plan(experiment, "smoke", **choice)  # type: ignore[arg-type]
    folder = comparison_folder(place, experiment, "smoke")
    return configs, declare(folder, Declaration(experiment=experiment, preset="smoke"), configs)


def taken_over(folders: list[Path], others: Path, threads: int) -> dict[Path, Path]:
    planned = {path: read_config(path) for path in folders}
    found = find_reusable(planned, read_declaration(folders[0].parent).experiment, others, threads)
    reuse_results(planned, found)
    return {path: donor.place for path, donor in found.items()}


def test_a_cell_that_two_tables_share_is_run_once_and_appears_in_both(tmp_path: Path) -> None:
    configs, folders = declared(tmp_path, "labels-trick", rows=["SGD"], columns=["class learning"])
    result = run(configs[0], folders[0])
    _, others = declared(tmp_path, "split-mnist", rows=["SGD"])
    taken = taken_over(others, tmp_path, threads=1)
    assert [path.name.split("--")[0] for path in taken] == ["class"]
    assert [finished(path) for path in others] == [False, False, True]
    ((path, donor),) = taken.items()
    assert donor == folders[0]
    copy = read_result(path)
    assert copy.R == result.R
    assert copy.machine == result.machine
    assert (copy.config.experiment, copy.config.column) == ("split-mnist", "class")
    assert [r.config.column for r in collect(path.parent).results] == ["class"]
    assert taken_over(others, tmp_path, threads=1) == {}


def test_packed_results_are_gone_on_with(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    configs, folders = declared(there, "labels-trick", rows=["SGD"], columns=["class learning"])
    run(configs[0], folders[0])
    packed = pack(folders[0].parent, here)
    _, again = declared(here, "labels-trick", rows=["SGD"])
    assert taken_over(again, here, threads=1) == {again[0]: packed / PACKED}
    assert [len(collect(packed).results), finished(again[1])] == [1, False]
    _, others = declared(here, "split-mnist", rows=["SGD"], columns=["class"])
    assert taken_over(others, here, threads=1) == {others[0]: again[0]}
    assert read_result(others[0]).R == collect(packed).results[0].R


def test_a_pack_without_training_losses_does_not_serve_where_they_are_shown(tmp_path: Path) -> None:
    _, folders = declared(tmp_path / "here", "mc-samples", rows=["SGD"], columns=["split class + trick"])
    configs, donors = declared(tmp_path / "there", "labels-trick", rows=["SGD"], columns=["+ labels trick"])
    same = read_config(folders[0]).model_copy(
        update={label: getattr(configs[0], label) for label in LABELS}  # the same work, in a table without curves
    )
    donors[0].joinpath("config.json").unlink()
    run(same, donors[0])
    line = read_result(donors[0]).model_copy(update={"curve": []}).model_dump_json()
    (tmp_path / "here" / "packed").mkdir()
    (tmp_path / "here" / "packed" / PACKED).write_text(line + "\n")
    assert taken_over(folders, tmp_path / "here", threads=1) == {}
    (tmp_path / "here" / "packed" / PACKED).write_text(read_result(donors[0]).model_dump_json() + "\n")
    assert len(taken_over(folders, tmp_path / "here", threads=1)) == 1


def test_a_run_of_two_numbers_of_threads_is_like_no_other(tmp_path: Path) -> None:
    configs, folders = declared(tmp_path, "labels-trick", rows=["SGD"], columns=["class learning"])
    run(configs[0], folders[0])
    _, others = declared(tmp_path, "split-mnist", rows=["SGD"], columns=["class"])
    path = folders[0] / "environment.json"
    machine = json.loads(path.read_text())
    machine["versions"]["threads"] = "2, then 1"
    path.write_text(json.dumps(machine))
    assert taken_over(others, tmp_path, threads=1) == {}


@pytest.mark.parametrize(("threads", "settings"), [(2, {}), (1, {"lr": 0.5})])
def test_other_work_is_not_taken_over(tmp_path: Path, threads: int, settings: dict[str, float]) -> None:
    configs, folders = declared(tmp_path, "labels-trick", rows=["SGD"], columns=["class learning"])
    other = configs[0].model_copy(update={"settings": configs[0].settings | settings})
    run(other, tmp_path / "elsewhere" / "run")
    assert taken_over(folders, tmp_path, threads) == {}


def test_a_setting_left_to_its_default_equals_the_same_setting_given() -> None:
    given = RunConfig(method="bgd", settings={"std_init": 0.02, "lr": 1.0})
    assert work(given) == work(RunConfig(method="bgd", settings={"lr": 1.0}))
    assert work(given) != work(RunConfig(method="bgd", settings={"lr": 2.0}))


def test_a_run_from_the_day_of_another_default_is_not_taken_over(tmp_path: Path) -> None:
    configs, folders = declared(tmp_path, "labels-trick", rows=["SGD"], columns=["class learning"])
    donor = tmp_path / "elsewhere" / "run"
    run(configs[0].model_copy(update={"settings": {}}), donor)  # the learning rate is left to its default
    environment = json.loads((donor / "environment.json").read_text())
    assert environment["settings"]["lr"] == configs[0].settings["lr"]
    for then in (environment["settings"] | {"lr": 0.5}, {}):  # another default; and a run that does not say
        (donor / "environment.json").write_text(json.dumps(environment | {"settings": then}))
        assert taken_over(folders, tmp_path, threads=1) == {}
    (donor / "environment.json").write_text(json.dumps(environment))
    assert len(taken_over(folders, tmp_path, threads=1)) == 1


def test_paper_tables_share_their_cells() -> None:
    def works(name: str, **choice: object) -> set[str]:
        return {work(config) for config in plan(find(name), "paper", **choice)}  # type: ignore[arg-type]

    without = works("labels-trick", columns=["class learning"])
    assert without < works("split-mnist", columns=["class"])
    assert works("labels-trick", columns=["+ labels trick"], rows=["BGD"], seeds=[2019]) < works("mc-samples")
    assert works("continuous-permuted-mnist", columns=["10 tasks"], rows=["BGD", "BGD, std capped", "SGD"]) < works(
        "mc-samples"
    )
    assert works("continuous-permuted-mnist", columns=["5 tasks"], rows=["MAS"], seeds=[2019]) < works(
        "continuous-search"
    )


def test_what_cannot_be_read_or_was_made_by_another_version_is_passed_over(tmp_path: Path) -> None:
    configs, folders = declared(tmp_path, "labels-trick", rows=["SGD"], columns=["class learning"])
    run(configs[0], tmp_path / "other" / "run")
    for name, config in (("strange", "{}"), ("gone", '{"method": "of-yesterday"}')):
        (tmp_path / "another" / name).mkdir(parents=True)
        (tmp_path / "another" / name / "config.json").write_text(config)
        (tmp_path / "another" / name / "result.json").write_text("{}")
    environment = tmp_path / "other" / "run" / "environment.json"
    ours = environment.read_text()
    environment.write_text(ours.replace(f'"{torch.__version__}"', '"1.0"'))
    assert environment.read_text() != ours
    assert taken_over(folders, tmp_path, threads=1) == {}
    environment.write_text(ours)
    assert taken_over(folders, tmp_path, threads=1) == {folders[0]: tmp_path / "other" / "run"}
