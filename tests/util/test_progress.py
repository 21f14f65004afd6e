"""Progress bars: off by default, shown in a terminal or notebook, silent elsewhere."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.util import progress
from numparq.util.progress import ProgressBar, ProgressShare

FRAME = pd.DataFrame({"a": range(1000), "b": [str(number % 9) for number in range(1000)], "k": [1, 2] * 500})


class RecordingDisplay:
    """Display that keeps what it shows."""

    shown: ClassVar[list[list[Any]]] = []

    def __init__(self, label: str) -> None:
        self.updates: list[Any] = [label]
        self.shown.append(self.updates)

    def update(self, done: int, total: int, text: str) -> None:
        self.updates.append((done, total, text))

    def close(self) -> None:
        self.updates.append("closed")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    monkeypatch.setattr(RecordingDisplay, "shown", [])
    monkeypatch.setattr(progress, "_display_kind", lambda: RecordingDisplay)
    return RecordingDisplay.shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("progress")
    numparq.to_parquet(FRAME, folder / "x.parquet", row_group_size=100)
    numparq.to_parquet(FRAME, folder / "dataset", partition_cols=["k"], row_group_size=100)
    data = (folder / "x.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(data[: len(data) * 3 // 4])
    (folder / "damaged.parquet").write_bytes(data[:100] + b"\xff" * 40 + data[140:])
    return folder


# What shows bars, and their labels.
OPERATIONS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "read a file": (lambda at, **bar: numparq.read_parquet(at / "x.parquet", **bar), ["reading"]),
    "read rows of a file": (
        lambda at, **bar: numparq.read_parquet(at / "x.parquet", ["b"], (col("a") > 250) & (col("b") == "3"), **bar),
        ["reading"],
    ),
    "read some rows": (lambda at, **bar: numparq.read_parquet(at / "x.parquet", nrows=150, **bar), ["reading"]),
    "skip damage": (
        lambda at, **bar: numparq.read_parquet(at / "damaged.parquet", on_error="skip", **bar),
        ["reading"],
    ),
    "read a dataset": (lambda at, **bar: numparq.read_parquet(at / "dataset", **bar), ["reading"]),
    "read rows of a dataset": (
        lambda at, **bar: numparq.Dataset(at / "dataset").read(filters=[("a", ">", 250), ("k", "=", 1)], **bar),
        ["reading"],
    ),
    "write a file": (lambda at, **bar: numparq.to_parquet(FRAME, row_group_size=100, **bar), ["writing"]),
    "write a dataset": (
        lambda at, **bar: numparq.to_parquet(
            FRAME, at / "new", partition_cols=["k"], existing_data_behavior="delete_matching", **bar
        ),
        ["writing"],
    ),
    "verify": (lambda at, **bar: numparq.verify(at / "x.parquet", **bar), ["checking"]),
    "salvage damaged pages": (
        lambda at, **bar: numparq.salvage(at / "damaged.parquet", at / "saved.parquet", force=True, **bar),
        ["checking", "rewriting"],
    ),
    "salvage without a footer": (
        lambda at, **bar: numparq.salvage(
            at / "cut.parquet", at / "saved.parquet", at / "x.parquet", force=True, **bar
        ),
        ["finding pages", "decoding"],
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_bars_are_shown_on_request(folder: Path, shown: list[list[Any]], name: str):
    do, labels = OPERATIONS[name]
    do(folder)
    assert shown == []
    do(folder, progress=True)
    assert list(dict.fromkeys(updates[0] for updates in shown)) == labels  # skipped damage may be read again
    for _, *updates, end in shown:
        assert end == "closed"
        counts = [done for done, _, _ in updates]
        assert counts == sorted(counts)
        done, total, text = updates[-1]
        assert done == total or name.startswith("salvage"), text


def test_pipes_stay_silent(folder: Path, capfd: pytest.CaptureFixture):
    for do, _ in OPERATIONS.values():
        do(folder, progress=True)
    assert capfd.readouterr() == ("", "")


def test_standard_error_of_any_kind(monkeypatch: pytest.MonkeyPatch):
    for stream in (None, object()):
        monkeypatch.setattr(sys, "stderr", stream)
        assert len(numparq.to_parquet(FRAME, progress=True) or b"") > 0


def test_terminals_stay_silent_by_default(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for do, _ in OPERATIONS.values():
        do(folder)
    assert capfd.readouterr() == ("", "")


def test_share_counts_at_most_its_total(shown: list[list[Any]]):
    with ProgressBar(True, "label", "byte") as bar:
        shares = [ProgressShare(bar, 3_000_000), ProgressShare(bar, 1_000_000)]
        shares[0].advance(2_000_000)
        shares[0].advance(2_000_000)
        shares[1].finish()
        shares[1].finish()
    texts = [text for _, _, text in shown[0][1:-1]]
    assert texts[1] == "0.0 of 4.0 MB"
    assert texts[3:5] == ["3.0 of 4.0 MB", "4.0 of 4.0 MB"]
    assert texts[-1] == "4.0 of 4.0 MB"


def test_notebooks_need_no_widgets(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    shown: list[tuple[str, Any]] = []

    class Handle:
        def update(self, content: Any, raw: bool) -> None:
            shown.append(("update", content))

    def display(content: Any, raw: bool, display_id: bool) -> Handle:
        shown.append(("display", content))
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    ipython.display = types.ModuleType("IPython.display")  # type: ignore[attr-defined]
    ipython.display.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)  # type: ignore[attr-defined]
    numparq.to_parquet(FRAME, row_group_size=100, progress=True)
    assert [how for how, _ in shown] == ["display", "update"]  # others came within a tenth of a second
    content = shown[-1][1]
    assert content["text/plain"].startswith("writing: 1,000 of 1,000 rows, ")
    assert '<progress value="1000" max="1000"' in content["text/html"]
    shell.kernel = None  # IPython in a terminal
    numparq.to_parquet(FRAME, progress=True)
    assert len(shown) == 2
    assert capsys.readouterr() == ("", "")


SCRIPT = """
import sys, numparq, pandas
frame = pandas.DataFrame({"a": range(1000)})
data = numparq.to_parquet(frame, **eval(sys.argv[1]))
frame = numparq.read_parquet(data, **eval(sys.argv[1]))
"""


def _in_terminal(arguments: list[str]) -> str:
    """Run a process with a terminal as its standard error, and return what it prints there."""
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "xterm"}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=follower, env=environment) as process:
        os.close(follower)
        printed = b""
        while True:
            try:
                some = os.read(leader, 4096)
            except OSError:  # the other side is closed
                break
            if not some:
                break
            printed += some
    os.close(leader)
    assert process.returncode == 0
    return printed.decode()


@pytest.mark.slow  # starts processes
def test_terminal_shows_a_bar_on_request(folder: Path):
    assert not {"writing", "reading"} & set(_in_terminal([sys.executable, "-c", SCRIPT, "{}"]).split())
    printed = _in_terminal([sys.executable, "-c", SCRIPT, "{'progress': True}"])
    assert "writing" in printed
    assert "1,000 of 1,000 rows" in printed
    assert "reading" in printed
    assert "checking" in _in_terminal([sys.executable, "-m", "numparq", "verify", str(folder / "x.parquet")])


@pytest.mark.slow  # starts a kernel
@pytest.mark.skipif(not importlib.util.find_spec("nbclient"), reason="needs nbclient and ipykernel")
def test_real_notebook():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    source = f"import sys\nsys.path[:0] = {sys.path!r}\nsys.argv = ['', \"{{'progress': True}}\"]\n{SCRIPT}"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    nbclient.NotebookClient(notebook, timeout=300).execute()
    outputs = notebook.cells[0].outputs
    assert [output.output_type for output in outputs] == ["display_data"] * 2
    assert outputs[0].data["text/plain"].startswith("writing: 1,000 of 1,000 rows")
    assert outputs[1].data["text/plain"].startswith("reading: ")
