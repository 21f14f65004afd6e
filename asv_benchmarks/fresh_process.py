"""Fresh processes for memory measurements, and their resident memory (Linux: VmHWM of /proc/self)."""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TIMEOUT_SECONDS = 600
RESET_PEAK = "5"

# -P and the folder above this package at the end of the path: numparq is to be the one that is installed.
ENTRY = """import importlib, sys
sys.path.append(sys.argv[3])
importlib.import_module("asv_benchmarks." + sys.argv[1]).answer(sys.argv[2])"""


class FreshProcessFailed(Exception):
    """A fresh process failed; the message says why."""


def in_fresh_process(module: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """Have a module of this package answer a task in a process of its own.

    Parameters
    ----------
    module : str
        Its name; it has ``answer(task)``, which takes the task as JSON and calls `print_result`.
    task : mapping
        What JSON can hold.

    Returns
    -------
    dict
        What was given.

    Raises
    ------
    FreshProcessFailed
        When the process ends with an error, or not at all.
    """
    command = [sys.executable, "-P", "-c", ENTRY, module, json.dumps(task), str(Path(__file__).parents[1])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise FreshProcessFailed(f"still running after {TIMEOUT_SECONDS} s") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise FreshProcessFailed(f"exit status {done.returncode}: {lines[-1] if lines else ''}")
    return json.loads(done.stdout.splitlines()[-1])


def print_result(result: Mapping[str, Any]) -> None:
    """Print the result of a fresh process on its last line."""
    sys.stdout.write(json.dumps(result) + "\n")


def _status_bytes(key: str) -> int:
    """Return one line of /proc/self/status, such as ``VmHWM: 1234 kB``, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {key}")


def _trim() -> None:
    """Return free memory to the system, so that new allocations raise the peak."""
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class PeakMeter:
    """Measures peak memory from its creation, after returning free memory and resetting the peak."""

    def __init__(self) -> None:
        _trim()
        Path("/proc/self/clear_refs").write_text(RESET_PEAK)
        self._before = _status_bytes("VmRSS")

    def peak(self) -> int:
        """Return the peak resident memory over its initial value, in bytes."""
        return _status_bytes("VmHWM") - self._before
