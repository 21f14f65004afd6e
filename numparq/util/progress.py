"""Progress bar: HTML in a notebook, drawn by rich in a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from importlib import import_module
from typing import Any, Protocol, Self

from .pluralize import pluralize

_SECONDS_BETWEEN_UPDATES = 0.1  # of a notebook's bar: each update is a message to the browser
_MEGABYTE = 1e6


class ProgressBar:
    """Progress bar of one operation, if `show`; `unit` is what it counts, such as "row" or "byte".

    It appears with the first `add_total`, and any thread may `advance` it. The terminal's bar is removed on `close`.
    """

    def __init__(self, show: bool = False, label: str = "", unit: str = "row") -> None:
        self.is_shown = bool(show)
        self._label, self._unit = label, unit
        self._done = self._total = 0
        self._lock = threading.Lock()
        self._display: _Display | None = None

    def add_total(self, count: int) -> None:
        """Add to the total."""
        self._update(total=count)

    def advance(self, count: int) -> None:
        """Add to what is done."""
        self._update(done=count)

    def _update(self, total: int = 0, done: int = 0) -> None:
        if not self.is_shown:
            return
        with self._lock:
            self._total += total
            self._done += done
            if self._display is None:
                kind = _display_kind()
                if kind is None:
                    self.is_shown = False
                    return
                self._display = kind(self._label)
            self._display.update(self._done, self._total, self._text())

    def _text(self) -> str:
        if self._unit == "byte":
            return f"{self._done / _MEGABYTE:,.1f} of {self._total / _MEGABYTE:,.1f} MB"
        return f"{self._done:,} of {pluralize(self._total, self._unit)}"

    def close(self) -> None:
        """Complete a notebook's bar, remove a terminal's."""
        with self._lock:
            display, self._display = self._display, None
            if display is not None:
                display.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class ProgressShare:
    """Share of a bar that one file stands for: never more than `total`, and all of it once finished."""

    def __init__(self, bar: ProgressBar, total: int) -> None:
        self._bar = bar
        self._left = total
        self._lock = threading.Lock()
        bar.add_total(total)

    def advance(self, count: int) -> None:
        """Add to what is done."""
        with self._lock:
            count = min(count, self._left)
            self._left -= count
        self._bar.advance(count)

    def finish(self) -> None:
        """Count the rest as done: what was skipped, or read without being counted."""
        self.advance(self._left)


class _Display(Protocol):
    """A bar on the screen."""

    def __init__(self, label: str) -> None: ...

    def update(self, done: int, total: int, text: str) -> None:
        """Show numbers, some of them only later."""

    def close(self) -> None:
        """Show no more."""


class _TerminalDisplay:
    """Bar on standard error, redrawn by rich's own thread."""

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
        console = Console(stderr=True, force_jupyter=False)
        self._progress = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
        self._task = self._progress.add_task(label, total=None, text="")
        self._progress.start()

    def update(self, done: int, total: int, text: str) -> None:
        self._progress.update(self._task, completed=done, total=total, text=text)

    def close(self) -> None:
        self._progress.stop()


class _NotebookDisplay:
    """Bar in the output of a notebook's cell: plain HTML, since rich and tqdm need ipywidgets there."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._began = time.monotonic()
        self._shown_at = 0.0
        self._latest = (0, 0, "")
        self._handle: Any = None

    def update(self, done: int, total: int, text: str) -> None:
        self._latest = done, total, text
        if time.monotonic() - self._shown_at >= _SECONDS_BETWEEN_UPDATES:
            self._show()

    def _show(self) -> None:
        from html import escape

        display = import_module("IPython.display").display
        done, total, text = self._latest
        line = f"{self._label}: {text}, {time.monotonic() - self._began:.1f} s"
        bar = f'<progress value="{done}" max="{max(total, 1)}" style="width: 20em"></progress>'
        content = {"text/plain": line, "text/html": f"<div>{bar} {escape(line)}</div>"}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)
        self._shown_at = time.monotonic()

    def close(self) -> None:
        self._show()


def _display_kind() -> type[_Display] | None:
    """Return the kind of bar that would be seen here; None in a pipe or file."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is not None:
        return _NotebookDisplay
    try:
        return _TerminalDisplay if sys.stderr is not None and sys.stderr.isatty() else None
    except (AttributeError, ValueError):  # an object without `isatty`, or a closed stream
        return None
