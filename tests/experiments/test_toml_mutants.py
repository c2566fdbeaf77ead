"""TOML files of valid syntax and any shape: an experiment, or one line that says what is wrong."""

import contextlib
import io
import json
import random

from attacks import attacks
from mutations import wrong_shapes

from bgd.cli import main

SOUND = {
    "title": "Mine",
    "setup": {
        "data": {"name": "digits", "train": 200, "shape": [1, 8, 8]},
        "net": {"name": "mlp", "widths": [20]},
        "stream": {"kind": "discrete", "epochs": 1, "batch_size": 20},
        "tasks": {"kind": "permute", "count": 3},
        "scenario": "domain",
    },
    "rows": {
        "BGD": {"method": "bgd", "settings": {"std_init": 0.05, "mc_samples": 2}},
        "EWC": {"method": "online-ewc", "settings": {"coefficient": 10.0}},
    },
    "columns": {"short": {}, "long": {"stream": {"epochs": 2}}},
    "presets": {"quick": {"expected_time": "1 s"}},
    "seeds": [1, 2],
    "paper": {"BGD": {"short": {"mean": 90.0, "spread": 1.0, "runs": 3}}},
    "notes": ["A note."],
}


def toml(value):
    """A value as TOML; JSON's null, which TOML lacks, as an empty table."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return "{}" if value is None else json.dumps(value)


def show(path):
    with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()):
        try:
            main(["show", str(path)])
        except SystemExit as ended:
            return int(ended.code or 0), errors.getvalue()
    return 0, errors.getvalue()


def test_every_mutant_is_shown_or_refused_in_one_line(tmp_path):
    path, pick = tmp_path / "mine.toml", random.Random(0)
    refused = 0
    for i, mutant in enumerate((json.dumps(SOUND), *wrong_shapes(json.dumps(SOUND).encode(), pick, attacks(80)))):
        content = json.loads(mutant)
        lines = content.items() if isinstance(content, dict) else ()
        path.write_text("".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in lines), errors="replace")
        code, error = show(path)
        assert code in (0, 2), error
        assert i or code == 0, error
        if code:
            refused += 1
            assert error.startswith("bgd: "), error
            assert error.count("\n") == 1, error
    assert refused > attacks(80) // 3
