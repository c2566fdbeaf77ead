"""A packed comparison says what its folder says."""

import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from bgd.cli import main
from bgd.experiments.pack import pack
from bgd.experiments.storage import collect, run_folders
from bgd.report.export import to_json
from bgd.report.load import load
from bgd.runs.errors import RunError
from bgd.runs.folder import read_config, write_json


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    with pytest.raises(SystemExit, match="0"):
        main(f"run mc-samples --preset smoke --methods sgd --seeds 1,2 --jobs 1 --quiet --out {out}".split())
    return out / "mc-samples-smoke"


def test_the_place_of_the_results_is_nobody_elses_business(comparison: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(comparison, tmp_path / comparison.name)
    command = "bgd run mc-samples --out /home/somebody/secret --methods 'K = 2, capped'"
    for path in (folder / "experiment.json", *folder.rglob("environment.json")):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"command": command}))
    packed = pack(folder, tmp_path / "results")
    found = [collect(packed).declaration.command, *(r.machine.command for r in collect(packed).results if r.machine)]
    assert set(found) == {"bgd run mc-samples --methods 'K = 2, capped'"}
    assert len(found) == 1 + 2 * 2  # the declaration, and two seeds in two columns


def test_a_report_of_the_pack_equals_that_of_the_folder(comparison: Path, tmp_path: Path) -> None:
    packed = pack(comparison, tmp_path / "results")
    assert sorted(path.name for path in packed.iterdir()) == ["experiment.json", "runs.jsonl"]
    whole, small = load([comparison]), load([tmp_path / "results"])
    assert _digits(to_json(small)) == _digits(to_json(whole))
    ours, theirs = collect(comparison), collect(packed)
    assert [r.config for r in theirs.results] == [r.config for r in ours.results]
    for one, other in zip(theirs.results, ours.results, strict=True):
        assert np.allclose(one.R, other.R, rtol=1e-5)
    assert all(r.machine and r.machine.command for r in theirs.results)
    assert not theirs.outdated
    assert not theirs.unfinished


def _digits(text: str) -> str:
    """With numbers as coarse as a table shows them."""
    return re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.2f}", text)


def test_packing_twice_gives_the_same_bytes(comparison: Path, tmp_path: Path) -> None:
    first = (pack(comparison, tmp_path) / "runs.jsonl").read_bytes()
    assert (pack(comparison, tmp_path) / "runs.jsonl").read_bytes() == first


def test_runs_beside_their_pack_count_once(comparison: Path, tmp_path: Path) -> None:
    packed = pack(comparison, tmp_path)
    run = next(path for path in comparison.iterdir() if path.is_dir())
    (packed / run.name).symlink_to(run)
    assert len(collect(packed).results) == len(collect(comparison).results)


def test_what_cannot_be_packed_or_read_is_named(comparison: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is the comparison itself"):
        pack(comparison, comparison.parent)
    packed = pack(comparison, tmp_path)
    path = packed / "runs.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(RunError, match=r"runs\.jsonl, line 4: not a run of this version"):
        collect(packed)


def test_the_command(comparison: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["pack", str(comparison.parent), "--out", str(tmp_path)])
    assert capsys.readouterr().out.strip() == str(tmp_path / "mc-samples-smoke")
    with pytest.raises(SystemExit, match="1"):
        main(["pack", str(tmp_path / "nothing")])


def test_remarks_beside_the_runs_reach_the_reports_and_survive_packing(comparison: Path, tmp_path: Path) -> None:
    packed = pack(comparison, tmp_path)
    (packed / "remarks.md").write_text("Two seeds only;\nthe rest *waits*.\n\nAnd so on.\n")
    pack(comparison, tmp_path)
    assert collect(packed).remarks.endswith("And so on.")
    for arguments in (["--markdown", str(tmp_path / "R.md")], ["--out", str(tmp_path / "page"), "--format", "html"]):
        with pytest.raises(SystemExit, match="0"):
            main(["report", str(packed), "--quiet", *arguments])
    assert "\nTwo seeds only;\nthe rest *waits*.\n" in (tmp_path / "R.md").read_text()
    page = next((tmp_path / "page").glob("*.html")).read_text()
    assert '<p class="remark">Two seeds only; the rest *waits*.</p>' in page
    assert page.index("And so on.") > page.index("the rest *waits*")


def test_a_network_that_blew_up_is_packed_as_json(comparison: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(comparison, tmp_path / "copy"))
    first = collect(copy).results[0]
    lost = [e.model_copy(update={"loss": [math.nan] * len(e.loss)}) for e in first.evaluations]
    (path,) = (path for path in run_folders(copy) if read_config(path) == first.config)
    write_json(path / "result.json", first.model_copy(update={"evaluations": lost}))
    packed = pack(copy, tmp_path / "results")
    for line in (packed / "runs.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)  # JSON knows no NaN
    assert math.isnan(collect(packed).results[0].evaluations[0].loss[0])


def test_remarks_come_along_but_replace_none(comparison: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(comparison, tmp_path / "copy"))
    (copy / "remarks.md").write_text("From the runs.")
    packed = pack(copy, tmp_path / "results")
    assert collect(packed).remarks == "From the runs."
    (packed / "remarks.md").write_text("Better.")
    pack(copy, tmp_path / "results")
    assert collect(packed).remarks == "Better."


def test_two_comparisons_of_one_name_are_not_packed_over_each_other(
    comparison: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in "ab":
        shutil.copytree(comparison, tmp_path / place / comparison.name)
    with pytest.raises(SystemExit, match="1"):
        main(["pack", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "results")])
    assert "have one name: pack them one by one" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "results").exists()


def without(comparison: Path, place: Path, seed: int) -> Path:
    """A copy that lacks the runs of a seed."""
    copy = Path(shutil.copytree(comparison, place / comparison.name))
    for path in run_folders(copy):
        if read_config(path).seed == seed:
            shutil.rmtree(path)
    return copy


def test_packing_adds_to_what_is_published(comparison: Path, tmp_path: Path) -> None:
    pack(without(comparison, tmp_path / "first", seed=2), tmp_path / "results")
    packed = pack(without(comparison, tmp_path / "second", seed=1), tmp_path / "results")
    assert (
        packed.joinpath("runs.jsonl").read_bytes()
        == pack(comparison, tmp_path / "all").joinpath("runs.jsonl").read_bytes()
    )


def test_published_runs_of_another_declaration_are_not_packed_over(comparison: Path, tmp_path: Path) -> None:
    packed = pack(comparison, tmp_path)
    before = (packed / "runs.jsonl").read_bytes()
    (packed / "runs.jsonl").write_bytes(before.replace(b'"lr": 0.01', b'"lr": 0.5'))
    with pytest.raises(RunError, match=r"holds 4 of 4 runs .* does not declare, such as SGD"):
        pack(comparison, tmp_path)
    assert b'"lr": 0.5' in (packed / "runs.jsonl").read_bytes()


def test_failed_runs_are_not_forgotten(comparison: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(comparison, tmp_path / comparison.name))
    failed = sorted(run_folders(copy))[0]
    (failed / "result.json").unlink()
    (failed / "failure.txt").write_text("Traceback\n  ...\nValueError: no\n")
    packed = pack(copy, tmp_path / "results")
    assert _digits(to_json(load(packed))) == _digits(to_json(load(copy)))
    (one,) = load(packed)[0].unfinished
    assert (one.state, one.why, one.config) == ("failed", "ValueError: no", read_config(failed))
    pack(
        without(comparison, tmp_path / "other", read_config(failed).seed), tmp_path / "results"
    )  # which knows nothing of it
    assert len(load(packed)[0].unfinished) == 1
    pack(comparison, tmp_path / "results")  # in which the same run has been done
    assert not (packed / "failed.jsonl").exists()
    assert not load(packed)[0].unfinished


def test_a_packed_run_that_is_planned_again_is_not_missing(comparison: Path, tmp_path: Path) -> None:
    packed = pack(comparison, tmp_path)
    for path in run_folders(comparison):
        (packed / path.name).mkdir()
        shutil.copy(path / "config.json", packed / path.name)
    collected = collect(packed)
    assert len(collected.results) == 4
    assert not collected.unfinished


def test_a_seed_counts_once_whatever_the_device(comparison: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(comparison, tmp_path / "copy"))
    first = collect(copy).results[0]
    assert first.machine
    config = first.config.model_copy(update={"device": "cuda"})
    later = copy / "later"
    later.mkdir()
    write_json(later / "config.json", config)
    write_json(later / "result.json", first.model_copy(update={"config": config, "machine": None}))
    write_json(later / "environment.json", first.machine.model_copy(update={"finished": "2999-01-01T00:00:00+00:00"}))
    collected = collect(copy)
    assert len(collected.results) == 4
    assert collected.results[0].config.device == "cuda"
    assert len(collected.outdated) == 1
