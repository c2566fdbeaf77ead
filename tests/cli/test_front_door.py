"""What someone sees first: ``bgd`` alone, and the doctor."""

import importlib.metadata
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bgd.cli import FIRST_STEPS, app, requirements
from bgd.cli.doctor import examine

ROOT = Path(__file__).parents[2]


def bgd(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_without_arguments_it_says_what_to_try() -> None:
    shown = bgd()
    assert shown.exit_code == 0
    assert all(command in shown.output for command in FIRST_STEPS)


@pytest.mark.parametrize("command", [command for command in FIRST_STEPS if "--install" not in command])
def test_what_it_says_to_try_exists(command: str) -> None:
    words = command.split()[1:]
    assert words[0] in bgd("--help").output
    shown = re.sub(r"\x1b\[[0-9;]*m", "", bgd(words[0], "--help").output)
    assert all(word in shown for word in words if word.startswith("--"))


def test_a_wrong_command_is_still_an_error() -> None:
    assert bgd("rnu").exit_code == 2


def test_the_doctor_checks_what_the_package_requires() -> None:
    declared = {re.split(r"[<>=!~;\[ ]", text)[0] for text in importlib.metadata.requires("bgd") or []}
    found = [one.name for extra in ("", "experiments") for one in requirements.dependencies(extra)]
    assert found[:2] == ["torch", "numpy"]
    assert set(found) <= declared
    assert {"jinja2", "pandas", "pillow", "requests"} <= set(found), "they were missing from a list by hand"
    assert set(found) <= set(examine()["versions"])


def test_the_doctor_names_what_is_missing_or_too_old_and_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real = requirements.installed_version
    changed = {"jinja2": None, "pandas": "1.0", "river": None}
    monkeypatch.setattr(requirements, "installed_version", lambda name: changed.get(name, real(name)))
    found = examine()
    assert "jinja2: not installed, needs jinja2>=3.1: pip install 'bgd[experiments]'" in found["problems"]
    assert any(problem.startswith("pandas: 1.0, needs pandas>=") for problem in found["problems"])
    assert found["extras"]["streams"] == "pip install 'bgd[streams]' for river"
