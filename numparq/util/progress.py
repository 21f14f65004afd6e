"""Progress bar for long work, in a terminal or notebook only."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

PATIENCE = 1.5  # seconds before a bar appears


class ProgressBar:
    """Progress bar over rows, shown once the work has taken `PATIENCE` seconds.

    Unless `show` says otherwise, it appears in a terminal or notebook only.
    """

    def __init__(self, show: bool | None = None, label: str = "writing rows") -> None:
        self._what = label
        self._wanted = _is_seen() if show is None else show
        self._began = time.monotonic()
        self._done = self._total = 0
        self._lock = threading.Lock()
        self._bar: Any = None
        self._task: Any = None

    def add_total(self, rows: int) -> None:
        """Add rows to the total."""
        self._total += rows

    def advance(self, rows: int) -> None:
        """Add rows to those written; may be called from any thread."""
        with self._lock:
            self._done += rows
            if self._bar is None:
                if not self._wanted or time.monotonic() - self._began < PATIENCE:
                    return
                self._start()
            self._bar.update(self._task, completed=self._done, total=self._total)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(self._what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=self._total)
        self._bar.start()

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _is_seen() -> bool:
    """Whether a bar would be seen: standard error is a terminal, or this is a notebook."""
    if "ipykernel" in sys.modules:
        return True
    return bool(sys.stderr is not None and sys.stderr.isatty())
