"""The examples of the documentation run and print what they show."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import shutil
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

import numparq
from numparq.cli import main
from support import readme

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


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run the demo with fewer rows in an empty folder; return the folder and the output."""
    folder, output = tmp_path_factory.mktemp("demo"), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(output):
        assert main(["demo", "--rows", "16000"]) == 0
    return folder, output.getvalue()


@pytest.fixture
def rides(demo: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the demo's file to a folder, and make that the current one."""
    shutil.copy(demo[0] / "rides.parquet", tmp_path)
    monkeypatch.chdir(tmp_path)


def blocks(language: str, page: Path = README) -> list[str]:
    if not page.exists():
        pytest.skip("no README beside the tests")
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    importlib.import_module(name)
    result = doctest.testmod(sys.modules[name])  # an attribute of the package may be a function of that name
    assert result.attempted
    assert not result.failed


SIZES = re.compile(r" +([\d,]+)(?: of ([\d,]+))? bytes")


def sizes(plan: list[str]) -> list[int]:
    """Return the numbers of bytes in the lines of a read plan."""
    return [int(size.replace(",", "")) for pair in SIZES.findall("\n".join(plan)) for size in pair if size]


def without_sizes(lines: list[str]) -> list[str]:
    return [SIZES.sub(" bytes", line) for line in lines]


@pytest.mark.slow
def test_readme_examples_with_fewer_rows(rides: None) -> None:
    pytest.importorskip("fsspec")
    num_python = len(blocks("python"))
    assert readme.run_examples(README.read_text()) == num_python + 2


@pytest.mark.slow
def test_readme_after_its_first_command(tmp_path: Path) -> None:
    """All examples run twice where the demo left its file, without modules that the command does not install."""
    (plan,) = [block.splitlines() for block in blocks("text") if "pruned by" in block]
    for program in (["-m", "numparq", "demo"], ["-P", readme.__file__, str(README), "--hide-others"]):
        done = subprocess.run([sys.executable, *program], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" examples ran\n") == 2
    lines = done.stdout.splitlines()
    parts = [lines[start : start + len(plan)] for start in range(len(lines))]
    printed = [part for part in parts if without_sizes(part) == without_sizes(plan)]
    assert len(printed) == 2
    assert sizes(printed[0]) == pytest.approx(sizes(plan), rel=0.05)  # the codec's version decides


@pytest.mark.parametrize("page", PAGES)
def test_documentation_python(rides: None, page: str) -> None:
    sessions = doctest.testfile(str(PROJECT / "docs" / page), module_relative=False)
    assert not sessions.failed
    amounts, days = [Decimal("1.50"), Decimal("2.25")], [date(2025, 1, 1), date(2025, 1, 2)]
    df = pd.DataFrame({"amount": amounts, "price": [1.5, 2.25], "day": days})
    names: dict = {"numparq": numparq, "pa": pa, "df": df}
    programs = [block for block in blocks("python", PROJECT / "docs" / page) if not block.startswith(">>>")]
    for block in programs:
        exec(block, names)
    assert sessions.attempted or programs


def test_demo_leaves_its_file_and_keeps_existing_ones(
    demo: tuple[Path, str], rides: None, capsys: pytest.CaptureFixture
) -> None:
    output = demo[1]
    assert output.count("the frames are equal") == 3
    assert re.search(r"\n  statistics +[\d,]+ rows .*pickup", output)
    assert "match the filter" in output
    assert output.endswith("the file stays here: rides.parquet\n")
    before = Path("rides.parquet").read_bytes()
    assert main(["demo", "--rows", "10"]) == 1
    assert "rides.parquet already exists; remove it, or name another file: numparq demo FILE" in capsys.readouterr().err
    assert Path("rides.parquet").read_bytes() == before
    assert main(["demo", "other.parquet", "--rows", "10"]) == 0
    assert numparq.ParquetFile("other.parquet").num_rows == 10


def test_warmup_command(capsys: pytest.CaptureFixture) -> None:
    assert main(["warmup"]) == 0
    assert "kernels are ready" in capsys.readouterr().out


def test_cli_errors_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then nothing")
    assert main(["head", str(tmp_path / "cut.parquet")]) == 1
    assert "truncated" in capsys.readouterr().err
