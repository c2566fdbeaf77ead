"""A packed comparison gives the same report as its folder."""

import contextlib
import json
import math
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from attacks import attacks
from mutations import damages

from bgd.cli import main
from bgd.experiments.pack import pack
from bgd.experiments.storage import (
    PACKED_FILES,
    read_comparison,
    read_declaration,
    read_packed,
    run_folders,
    write_declaration,
)
from bgd.files import write_atomically
from bgd.report.export import to_json
from bgd.report.load import load
from bgd.runs.digests import FILE as DIGESTS
from bgd.runs.errors import RunError
from bgd.runs.folder import read_config, write_json


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    with pytest.raises(SystemExit, match="0"):
        main(f"run mc-samples --preset smoke --row sgd --seeds 1,2 --jobs 1 --quiet --out {out}".split())
    return out / "mc-samples-smoke"


def test_paths_of_the_machine_are_not_published(comparison: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(comparison, tmp_path / comparison.name)
    command = "bgd run mc-samples --out /home/somebody/secret --row 'K = 2, capped'"
    for path in (folder / "experiment.json", *folder.rglob("environment.json")):
        content = json.loads(path.read_text()) | {"command": command}
        if "experiment" in content:
            content["experiment"]["import_paths"] = ["/home/somebody/secret"]
        path.write_text(json.dumps(content))
        (path.parent / "SHA256SUMS").unlink(missing_ok=True)
    packed = pack(folder, tmp_path / "results")
    found = [
        read_comparison(packed).declaration.command,
        *(r.machine.command for r in read_comparison(packed).results if r.machine),
    ]
    assert set(found) == {"bgd run mc-samples --row 'K = 2, capped'"}
    assert len(found) == 1 + 2 * 2  # the declaration, and two seeds in two columns
    assert "secret" not in "".join(path.read_text() for path in packed.iterdir())


def test_a_report_of_the_pack_equals_that_of_the_folder(comparison: Path, tmp_path: Path) -> None:
    packed = pack(comparison, tmp_path / "results")
    assert sorted(path.name for path in packed.iterdir()) == [DIGESTS, "experiment.json", "runs.jsonl"]
    whole, small = load([comparison]), load([tmp_path / "results"])
    assert _digits(to_json(small)) == _digits(to_json(whole))
    ours, theirs = read_comparison(comparison), read_comparison(packed)
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
    assert len(read_comparison(packed).results) == len(read_comparison(comparison).results)


def test_comparisons_that_cannot_be_packed_or_read_are_rejected(comparison: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is the comparison itself"):
        pack(comparison, comparison.parent)
    packed = pack(comparison, tmp_path)
    path = packed / "runs.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    sum_again(packed)
    with pytest.raises(RunError, match=r"runs\.jsonl, line 4: not a run of this version"):
        read_comparison(packed)


def sum_again(packed: Path) -> None:
    """Digests of what is there now, as the way out of an error says."""
    names = [name for name in PACKED_FILES if (packed / name).is_file()]
    sums = subprocess.run(["sha256sum", *names], cwd=packed, capture_output=True, check=True)
    (packed / DIGESTS).write_bytes(sums.stdout)


@pytest.mark.parametrize("name", PACKED_FILES)
def test_every_changed_byte_of_a_pack_is_noticed_and_named(name: str, comparison: Path, tmp_path: Path) -> None:
    packed = pack(failing(comparison, tmp_path), tmp_path / "results")
    content, pick = (packed / name).read_bytes(), random.Random(name)
    for mutant in damages(content, pick, attacks(30)):
        if mutant != content:
            (packed / name).write_bytes(mutant)
            with pytest.raises(RunError, match=rf"{name} has changed since it was packed: restore it, or where"):
                read_comparison(packed)
            with pytest.raises(RunError, match="has changed"):
                read_packed(packed)
            with pytest.raises(RunError, match="has changed"):
                pack(comparison, tmp_path / "results")
    (packed / name).unlink()
    if name != "runs.jsonl":
        with pytest.raises(RunError, match=rf"{name} is missing"):
            read_comparison(packed)


def test_a_list_of_digests_that_is_gone_or_damaged_is_noticed(comparison: Path, tmp_path: Path) -> None:
    packed = pack(comparison, tmp_path)
    sums = (packed / DIGESTS).read_bytes()
    for mutant in damages(sums, random.Random(3), attacks(60)):
        if mutant.split() != sums.split() and mutant != sums + sums:
            (packed / DIGESTS).write_bytes(mutant)
            with pytest.raises(RunError, match=r"has changed since|is missing|is no list of digests"):
                read_comparison(packed)
    (packed / DIGESTS).unlink()
    with pytest.raises(RunError, match=r"SHA256SUMS is missing: .*sha256sum experiment\.json runs\.jsonl > SHA256SUMS"):
        read_comparison(packed)
    sum_again(packed)
    assert read_comparison(packed).results


def test_an_interrupted_pack_is_read_and_packed_again(
    comparison: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pack(comparison, tmp_path / "whole")
    for writes in range(5):
        left = iter(range(writes))

        def interrupted(path: Path, content: bytes, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt
            write_atomically(path, content)

        packed = pack(without(comparison, tmp_path / f"first {writes}", seed=2), tmp_path / f"results {writes}")
        with monkeypatch.context() as patch:
            patch.setattr("bgd.runs.digests.write_atomically", interrupted)
            with contextlib.suppress(KeyboardInterrupt):
                pack(comparison, packed.parent)
        assert len(read_comparison(packed).results) in (2, 4)
        pack(comparison, packed.parent)
        assert {p.name: p.read_bytes() for p in packed.iterdir()} == {p.name: p.read_bytes() for p in whole.iterdir()}


def test_a_declaration_written_over_a_pack_belongs_to_it(comparison: Path, tmp_path: Path) -> None:
    packed = pack(comparison, tmp_path)
    changed = read_declaration(packed).model_copy(update={"command": "bgd run mc-samples"})
    write_declaration(packed, changed)
    assert read_comparison(packed).declaration.command == "bgd run mc-samples"


def test_the_command(comparison: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["pack", str(comparison.parent), "--out", str(tmp_path)])
    assert capsys.readouterr().out.strip() == str(tmp_path / "mc-samples-smoke")
    with pytest.raises(SystemExit, match="2"):
        main(["pack", str(tmp_path / "nothing"), "--out", str(tmp_path)])


def test_nothing_is_written_without_a_folder_to_write_to(
    comparison: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(["pack", str(comparison)])
    assert "--out" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_remarks_beside_the_runs_reach_the_reports_and_survive_packing(comparison: Path, tmp_path: Path) -> None:
    packed = pack(comparison, tmp_path)
    (packed / "remarks.md").write_text("Two seeds only;\nthe rest *waits*.\n\nAnd so on.\n")
    pack(comparison, tmp_path)
    assert read_comparison(packed).remarks.endswith("And so on.")
    for arguments in (["--markdown", str(tmp_path / "R.md")], ["--out", str(tmp_path / "page"), "--format", "html"]):
        with pytest.raises(SystemExit, match="0"):
            main(["report", str(packed), "--quiet", *arguments])
    assert "\nTwo seeds only;\nthe rest *waits*.\n" in (tmp_path / "pages" / "mc-samples.md").read_text()
    page = next((tmp_path / "page").glob("*.html")).read_text()
    assert '<p class="remark">Two seeds only; the rest *waits*.</p>' in page
    assert page.index("And so on.") > page.index("the rest *waits*")


def test_a_loss_that_is_not_finite_is_packed_as_json(comparison: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(comparison, tmp_path / "copy"))
    first = read_comparison(copy).results[0]
    diverged = [e.model_copy(update={"loss": [math.nan] * len(e.loss)}) for e in first.evaluations]
    (path,) = (path for path in run_folders(copy) if read_config(path) == first.config)
    write_json(path / "result.json", first.model_copy(update={"evaluations": diverged}))
    (path / "SHA256SUMS").unlink()
    packed = pack(copy, tmp_path / "results")
    for line in (packed / "runs.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)  # JSON has no NaN
    assert math.isnan(read_comparison(packed).results[0].evaluations[0].loss[0])


def test_remarks_are_packed_but_replace_none(comparison: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(comparison, tmp_path / "copy"))
    (copy / "remarks.md").write_text("From the runs.")
    packed = pack(copy, tmp_path / "results")
    assert read_comparison(packed).remarks == "From the runs."
    (packed / "remarks.md").write_text("Better.")
    pack(copy, tmp_path / "results")
    assert read_comparison(packed).remarks == "Better."


def test_two_comparisons_of_the_same_name_are_rejected(
    comparison: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        shutil.copytree(comparison, tmp_path / name / comparison.name)
    with pytest.raises(SystemExit, match="2"):
        main(["pack", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "results")])
    assert "have the same name: pack them one by one" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "results").exists()


def without(comparison: Path, folder: Path, seed: int) -> Path:
    """A copy that lacks the runs of a seed."""
    copy = Path(shutil.copytree(comparison, folder / comparison.name))
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
    sum_again(packed)
    with pytest.raises(RunError, match=r"holds 4 of 4 runs .* does not declare, such as SGD"):
        pack(comparison, tmp_path)
    assert b'"lr": 0.5' in (packed / "runs.jsonl").read_bytes()


def failing(comparison: Path, folder: Path) -> Path:
    """A copy whose first run has failed."""
    copy = Path(shutil.copytree(comparison, folder / comparison.name))
    failed = sorted(run_folders(copy))[0]
    (failed / "result.json").unlink()
    (failed / "failure.txt").write_text("Traceback\n  ...\nValueError: no\n")
    return copy


def test_failed_runs_are_recorded(comparison: Path, tmp_path: Path) -> None:
    copy = failing(comparison, tmp_path)
    failed = sorted(run_folders(copy))[0]
    packed = pack(copy, tmp_path / "results")
    assert _digits(to_json(load(packed))) == _digits(to_json(load(copy)))
    (one,) = load(packed)[0].unfinished
    assert (one.state, one.reason, one.config) == ("failed", "ValueError: no", read_config(failed))
    pack(
        without(comparison, tmp_path / "other", read_config(failed).seed), tmp_path / "results"
    )  # which has no such run
    assert len(load(packed)[0].unfinished) == 1
    pack(comparison, tmp_path / "results")  # in which the same run has finished
    assert not (packed / "failed.jsonl").exists()
    assert not load(packed)[0].unfinished


def test_a_packed_run_that_is_planned_again_is_not_missing(comparison: Path, tmp_path: Path) -> None:
    packed = pack(comparison, tmp_path)
    for path in run_folders(comparison):
        (packed / path.name).mkdir()
        shutil.copy(path / "config.json", packed / path.name)
    stored = read_comparison(packed)
    assert len(stored.results) == 4
    assert not stored.unfinished


def test_a_seed_counts_once_on_any_device(comparison: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(comparison, tmp_path / "copy"))
    first = read_comparison(copy).results[0]
    assert first.machine
    config = first.config.model_copy(update={"device": "cuda"})
    later = copy / "later"
    later.mkdir()
    write_json(later / "config.json", config)
    write_json(later / "result.json", first.model_copy(update={"config": config, "machine": None}))
    write_json(later / "environment.json", first.machine.model_copy(update={"finished": "2999-01-01T00:00:00+00:00"}))
    stored = read_comparison(copy)
    assert len(stored.results) == 4
    assert stored.results[0].config.device == "cuda"
    assert len(stored.outdated) == 1
