"""Exceptions from the linter's rules: a list that may only shrink."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXCEPTIONS = Path(__file__).with_name("ruff_exceptions.toml")
# Violations in the listed files, by rule: lower a number whenever it falls.
MOST = {
    "ANN001": 39,
    "ANN201": 39,
    "ANN202": 3,
    "ANN401": 1090,
    "C901": 12,
    "PLR0913": 85,
    "PT012": 20,
    "PT017": 10,
    "PT031": 1,
    "SIM905": 1,
}


def exceptions() -> dict[str, list[str]]:
    return tomllib.loads(EXCEPTIONS.read_text())["lint"]["per-file-ignores"]


def path_of(pattern: str) -> str:
    return pattern.removeprefix("../../")


@pytest.fixture(scope="module")
def violations() -> Counter[tuple[str, str]]:
    """Number of violations of the excepted rules, by file and rule, as if no file were excepted."""
    if not (ROOT / "pyproject.toml").exists() or not (ROOT / "numparq").is_dir():
        pytest.skip("needs a checkout")
    if importlib.util.find_spec("ruff") is None:
        pytest.skip("ruff is not installed")
    rules = sorted({rule for names in exceptions().values() for rule in names})
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--isolated",
            "--line-length=120",
            "--target-version=py311",
            "--output-format=json",
        ]
        + [f"--select={','.join(rules)}", "--config", 'lint.pydocstyle.convention="numpy"', "--exit-zero"]
        + [path_of(path) for path in exceptions()],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    found = json.loads(run.stdout)
    return Counter((Path(each["filename"]).relative_to(ROOT).as_posix(), each["code"]) for each in found)


def test_every_exception_is_needed(violations):
    listed = {(path_of(path), rule) for path, rules in exceptions().items() for rule in rules}
    assert sorted(listed - violations.keys()) == []


def test_violations_do_not_grow(violations):
    listed = {(path_of(path), rule) for path, rules in exceptions().items() for rule in rules}
    totals: Counter[str] = Counter()
    for (path, rule), number in violations.items():
        if (path, rule) in listed:
            totals[rule] += number
    assert all(number <= MOST[rule] for rule, number in totals.items()), dict(sorted(totals.items()))
