"""Kills processes that have files of a folder open (Linux /proc)."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path


def processes() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield int(name)


def uses(pid: int, part: str) -> bool:
    """Whether a process has a file open or mapped with this text in its path."""
    try:
        for descriptor in os.scandir(f"/proc/{pid}/fd"):
            if part in os.readlink(descriptor.path):
                return True
        return part in Path(f"/proc/{pid}/maps").read_text()
    except OSError:  # it has ended, or the file has been closed
        return False


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def worker(pid: int) -> int | None:
    """Return a Python worker itself."""
    return pid if "daemon" in command(pid) else None


def executor(pid: int) -> int | None:
    """Return the Java process of a Python worker, if it is an executor and not the driver."""
    while pid > 1:
        pid = parent(pid)
        if "CoarseGrainedExecutorBackend" in command(pid):
            return pid
    return None


class Killer(threading.Thread):
    """Kills, once, the process that `whom` returns for a Python process that uses files with `part` in their path."""

    def __init__(self, part: str, whom: Callable[[int], int | None]) -> None:
        super().__init__(daemon=True)
        self.part, self.whom, self.killed = part, whom, 0
        self._over = threading.Event()

    def run(self) -> None:
        own = os.getpid()
        while not self._over.is_set() and not self.killed:
            for pid in processes():
                if pid == own or "python" not in command(pid) or "daemon" not in command(pid):
                    continue
                victim = self.whom(pid) if uses(pid, self.part) else None
                if victim is not None:
                    os.kill(victim, signal.SIGKILL)
                    self.killed = victim
                    break
            time.sleep(0.002)

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self.join()
