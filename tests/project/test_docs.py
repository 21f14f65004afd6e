"""The examples of the documentation run and print what they show."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

import numparq
from numparq.cli import main

pa = pytest.importorskip("pyarrow", reason="the examples write their files with pyarrow")

PROJECT = Path(__file__).resolve().parents[2]
README = PROJECT / "README.md"
# Pages with Python that runs, as a session or a program. kernels.md only sketches a kernel.
PAGES = sorted(
    page.name for page in (PROJECT / "docs").glob("*.md") if "```python" in page.read_text() and page.stem != "kernels"
)
PACKAGE = Path(numparq.__file__).resolve().parent
# Modules with examples in docstrings; those of Spark need a session.
MODULES = sorted(
    ".".join(("numparq", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text() and "spark" not in path.relative_to(PACKAGE).parts
)


@pytest.fixture
def rides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the file that the README reads to a folder, and make that the current one."""
    from numparq.cli.demo import make_rides

    make_rides(4000).to_parquet(tmp_path / "rides.parquet", row_group_size=1000)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(language: str, page: Path = README) -> list[str]:
    if not page.exists():
        pytest.skip("no README beside the tests")
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def without_sizes(text: str) -> str:
    """Remove numbers of bytes, which depend on the writer."""
    return re.sub(r"[\d,]+ (of [\d,]+ )?bytes", "bytes", text)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    importlib.import_module(name)
    result = doctest.testmod(sys.modules[name])  # an attribute of the package may be a function of that name
    assert result.attempted
    assert not result.failed


def test_readme_python(rides: Path, capsys: pytest.CaptureFixture) -> None:
    names: dict = {"numparq": numparq, "data": (rides / "rides.parquet").read_bytes()}
    for block in blocks("python"):
        exec(block, names)
    assert names["df"]["fare"].size == 1000
    (plan,) = [block for block in blocks("text") if "pruned by" in block]
    assert without_sizes(plan) in without_sizes(capsys.readouterr().out)


@pytest.mark.parametrize("page", PAGES)
def test_documentation_python(rides: Path, page: str) -> None:
    sessions = doctest.testfile(str(PROJECT / "docs" / page), module_relative=False)
    assert not sessions.failed
    amounts, days = [Decimal("1.50"), Decimal("2.25")], [date(2025, 1, 1), date(2025, 1, 2)]
    df = pd.DataFrame({"amount": amounts, "price": [1.5, 2.25], "day": days})
    names: dict = {"numparq": numparq, "pa": pa, "df": df}
    programs = [block for block in blocks("python", PROJECT / "docs" / page) if not block.startswith(">>>")]
    for block in programs:
        exec(block, names)
    assert sessions.attempted or programs


def test_readme_commands(rides: Path, capsys: pytest.CaptureFixture) -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    commands = [line.split("#")[0] for line in lines if line.startswith("numparq ")]
    assert len(commands) == 5
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0
    assert "pickup" in capsys.readouterr().out


def test_demo_command(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["demo", "--rows", "3000", "--keep", str(tmp_path / "kept.parquet")]) == 0
    out = capsys.readouterr().out
    assert out.count("the frames are equal") == 3
    assert re.search(r"\n  statistics +[\d,]+ rows .*pickup", out)
    assert "match the filter" in out
    assert numparq.ParquetFile(tmp_path / "kept.parquet").num_rows == 3000


def test_warmup_command(capsys: pytest.CaptureFixture) -> None:
    assert main(["warmup"]) == 0
    assert "kernels are ready" in capsys.readouterr().out


def test_cli_errors_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then nothing")
    assert main(["head", str(tmp_path / "cut.parquet")]) == 1
    assert "truncated" in capsys.readouterr().err
