"""The notice of compiling: once, and only where somebody sees it."""

from __future__ import annotations

import io
import logging
import os
import sys

import pytest

from numparq.kernels.compile import bind
from support.kernels.object_cache import PackageCopy

THREADS = """
import threading
from numparq.kernels.kernel_groups import kernels, object_kernels
loads = [threading.Thread(target=group.load) for group in (kernels, object_kernels) for _ in range(4)]
for load in loads: load.start()
for load in loads: load.join()
assert kernels.mode == "object"
"""


class Stream(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


class OutStream(Stream):
    """Standard error of a notebook, which is no terminal."""

    __module__ = "ipykernel.iostream"


@pytest.mark.parametrize(
    ("stream", "count"),
    [(Stream(True), 1), (OutStream(False), 1), (Stream(False), 0), (None, 0)],
    ids=["terminal", "notebook", "pipe", "no stream"],
)
def test_notice_appears_once_where_it_is_seen(stream, count, monkeypatch, caplog):
    monkeypatch.setattr(bind, "_announced", False)
    monkeypatch.setattr(sys, "stderr", stream)
    for _ in range(2):
        bind.announce_compiling()
    assert [record.name for record in caplog.records] == ["numparq"] * count


def test_closed_stream_is_not_seen(monkeypatch, caplog):
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    bind.announce_compiling()
    assert caplog.records == []


def test_notice_is_a_warning_of_the_logger(monkeypatch, caplog):
    monkeypatch.setattr(bind, "_announced", False)
    monkeypatch.setattr(sys, "stderr", Stream(True))
    with caplog.at_level(logging.ERROR, logger="numparq"):
        bind.announce_compiling()
    assert caplog.records == []


@pytest.mark.slow
def test_terminal_shows_the_notice_if_kernels_are_compiled(tmp_path):
    project = PackageCopy(tmp_path)
    cold, warm = on_terminal(project), on_terminal(project)
    (line,) = cold.splitlines()
    assert line.startswith("numparq compiles its kernels, once for this machine: about 10 s")
    assert warm == ""


def on_terminal(project: PackageCopy) -> str:
    """Load kernels from several threads, and return what a terminal shows of standard error."""
    import pty

    terminal, end = pty.openpty()
    process = project.start(THREADS, stderr=end)
    os.close(end)
    assert process.wait(100) == 0
    os.set_blocking(terminal, False)
    try:
        return os.read(terminal, 10_000).decode()
    except OSError:  # nothing was written
        return ""
    finally:
        os.close(terminal)
