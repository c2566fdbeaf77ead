"""The same computation is done once, and only the same is reused."""

import json
from pathlib import Path

import pytest
import torch

from bgd.experiments import find, make_plan
from bgd.experiments.folders import comparison_folder
from bgd.experiments.pack import pack
from bgd.experiments.reuse import LABELS, computation, find_reusable, reuse_results
from bgd.experiments.storage import PACKED, Declaration, declare, read_comparison, read_declaration
from bgd.runs.config import RunConfig
from bgd.runs.digests import replace_files
from bgd.runs.folder import finished, read_config, read_result
from bgd.runs.run import run


def declared(out: Path, name: str, **choice: object) -> tuple[list[RunConfig], list[Path]]:
    experiment = find(name)
    configs = list(make_plan(experiment, "smoke", **choice).configs)  # type: ignore[arg-type]
    folder = comparison_folder(out, experiment, "smoke")
    return configs, declare(folder, Declaration(experiment=experiment, preset="smoke"), configs)


def reuse(folders: list[Path], others: Path, threads: int) -> dict[Path, Path]:
    planned = {path: read_config(path) for path in folders}
    found = find_reusable(planned, read_declaration(folders[0].parent).experiment, others, threads)
    reuse_results(planned, found)
    return {path: one.source for path, one in found.items()}


def test_a_cell_that_two_tables_share_is_run_once_and_appears_in_both(tmp_path: Path) -> None:
    configs, folders = declared(tmp_path, "labels-trick", rows=["SGD"], columns=["class learning"])
    result = run(configs[0], folders[0])
    _, others = declared(tmp_path, "split-mnist", rows=["SGD"])
    reused = reuse(others, tmp_path, threads=1)
    assert [path.name.split("--")[0] for path in reused] == ["class"]
    assert [finished(path) for path in others] == [False, False, True]
    ((path, source),) = reused.items()
    assert source == folders[0]
    copy = read_result(path)
    assert copy.R == result.R
    assert copy.machine == result.machine
    assert (copy.config.experiment, copy.config.column) == ("split-mnist", "class")
    assert [r.config.column for r in read_comparison(path.parent).results] == ["class"]
    assert reuse(others, tmp_path, threads=1) == {}


def test_packed_results_are_continued(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    configs, folders = declared(theirs, "labels-trick", rows=["SGD"], columns=["class learning"])
    run(configs[0], folders[0])
    packed = pack(folders[0].parent, ours)
    _, again = declared(ours, "labels-trick", rows=["SGD"])
    assert reuse(again, ours, threads=1) == {again[0]: packed / PACKED}
    assert [len(read_comparison(packed).results), finished(again[1])] == [1, False]
    _, others = declared(ours, "split-mnist", rows=["SGD"], columns=["class"])
    assert reuse(others, ours, threads=1) == {others[0]: again[0]}
    assert read_result(others[0]).R == read_comparison(packed).results[0].R


def test_packed_runs_without_training_losses_are_not_reused_where_these_are_shown(tmp_path: Path) -> None:
    _, folders = declared(tmp_path / "ours", "mc-samples", rows=["SGD"], columns=["split class + trick"])
    configs, sources = declared(tmp_path / "theirs", "labels-trick", rows=["SGD"], columns=["+ labels trick"])
    same = read_config(folders[0]).model_copy(
        update={
            label: getattr(configs[0], label) for label in LABELS
        }  # the same computation, in a table without curves
    )
    sources[0].joinpath("config.json").unlink()
    run(same, sources[0])
    line = read_result(sources[0]).model_copy(update={"curve": []}).model_dump_json()
    (tmp_path / "ours" / "packed").mkdir()
    replace_files(tmp_path / "ours" / "packed", {PACKED: f"{line}\n".encode()}, [PACKED])
    assert reuse(folders, tmp_path / "ours", threads=1) == {}
    whole = read_result(sources[0]).model_dump_json()
    replace_files(tmp_path / "ours" / "packed", {PACKED: f"{whole}\n".encode()}, [PACKED])
    assert len(reuse(folders, tmp_path / "ours", threads=1)) == 1


def test_a_run_with_two_numbers_of_threads_is_not_reused(tmp_path: Path) -> None:
    configs, folders = declared(tmp_path, "labels-trick", rows=["SGD"], columns=["class learning"])
    run(configs[0], folders[0])
    _, others = declared(tmp_path, "split-mnist", rows=["SGD"], columns=["class"])
    path = folders[0] / "environment.json"
    machine = json.loads(path.read_text())
    machine["versions"]["threads"] = "2, then 1"
    path.write_text(json.dumps(machine))
    assert reuse(others, tmp_path, threads=1) == {}


@pytest.mark.parametrize(("threads", "settings"), [(2, {}), (1, {"lr": 0.5})])
def test_other_work_is_not_reuse(tmp_path: Path, threads: int, settings: dict[str, float]) -> None:
    configs, folders = declared(tmp_path, "labels-trick", rows=["SGD"], columns=["class learning"])
    other = configs[0].model_copy(update={"settings": configs[0].settings | settings})
    run(other, tmp_path / "elsewhere" / "run")
    assert reuse(folders, tmp_path, threads) == {}


def test_a_setting_left_to_its_default_equals_the_same_setting_given() -> None:
    given = RunConfig(method="bgd", settings={"mc_samples": 1, "lr": 1.0})
    assert computation(given) == computation(RunConfig(method="bgd", settings={"lr": 1.0}))
    assert computation(given) != computation(RunConfig(method="bgd", settings={"lr": 2.0}))


def test_a_run_from_the_day_of_another_default_is_not_reuse(tmp_path: Path) -> None:
    configs, folders = declared(tmp_path, "labels-trick", rows=["SGD"], columns=["class learning"])
    source = tmp_path / "elsewhere" / "run"
    run(configs[0].model_copy(update={"settings": {}}), source)  # the learning rate is left to its default
    (source / "SHA256SUMS").unlink()
    environment = json.loads((source / "environment.json").read_text())
    assert environment["settings"]["lr"] == configs[0].settings["lr"]
    for then in (environment["settings"] | {"lr": 0.5}, {}):  # another default; and a run without a record
        (source / "environment.json").write_text(json.dumps(environment | {"settings": then}))
        assert reuse(folders, tmp_path, threads=1) == {}
    (source / "environment.json").write_text(json.dumps(environment))
    assert len(reuse(folders, tmp_path, threads=1)) == 1


def test_paper_tables_share_their_cells() -> None:
    def computations(name: str, **choice: object) -> set[str]:
        return {computation(config) for config in make_plan(find(name), "paper", **choice).configs}  # type: ignore[arg-type]

    without = computations("labels-trick", columns=["class learning"])
    assert without < computations("split-mnist", columns=["class"])
    assert computations("labels-trick", columns=["+ labels trick"], rows=["BGD"], seeds=[2019]) < computations(
        "mc-samples"
    )
    assert computations(
        "continuous-permuted-mnist", columns=["10 tasks"], rows=["BGD", "BGD, std capped", "SGD"]
    ) < computations("mc-samples")
    assert computations("continuous-permuted-mnist", columns=["5 tasks"], rows=["MAS"], seeds=[2019]) < computations(
        "continuous-search"
    )


def test_unreadable_runs_and_those_of_other_versions_are_skipped(tmp_path: Path) -> None:
    configs, folders = declared(tmp_path, "labels-trick", rows=["SGD"], columns=["class learning"])
    run(configs[0], tmp_path / "other" / "run")
    for name, config in (("unreadable", "{}"), ("unknown", '{"method": "of-yesterday"}')):
        (tmp_path / "another" / name).mkdir(parents=True)
        (tmp_path / "another" / name / "config.json").write_text(config)
        (tmp_path / "another" / name / "result.json").write_text("{}")
    environment = tmp_path / "other" / "run" / "environment.json"
    ours = environment.read_text()
    environment.write_text(ours.replace(f'"{torch.__version__}"', '"1.0"'))
    assert environment.read_text() != ours
    assert reuse(folders, tmp_path, threads=1) == {}
    environment.write_text(ours)
    assert reuse(folders, tmp_path, threads=1) == {folders[0]: tmp_path / "other" / "run"}
