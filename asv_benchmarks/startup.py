"""Start-up: wall time of fresh processes that read one file, with a warm and an empty kernel cache."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Run with -P: numparq is to be the one that is installed, wherever the runner is started.
PROGRAMS = {
    "pyarrow": "import sys, pandas as pd; pd.read_parquet(sys.argv[1], engine='pyarrow')",
    "numparq": "import sys, numparq; numparq.read_parquet(sys.argv[1])",
}
CACHE_VARIABLE = "NUMPARQ_CACHE_DIR"
# What pip installs has its bytecode beside it; a checkout gets there with the first process, unless that is forbidden.
KEEP_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
TIMEOUT_SECONDS = 300


class ProcessFailed(Exception):
    """A fresh process failed; the message is its last line on standard error."""


@dataclass
class WallTimes:
    """Wall times of one program in seconds, or the failure."""

    times: list[float] = field(default_factory=list)
    failure: str | None = None

    @property
    def best(self) -> float | None:
        """Return the shortest time in seconds."""
        return min(self.times) if self.times and self.failure is None else None

    @property
    def median(self) -> float | None:
        """Return the median time in seconds."""
        return statistics.median(self.times) if self.times and self.failure is None else None


def wall_time(program: str, path: Path, environment: Mapping[str, str] | None = None) -> float:
    """Seconds from starting to the end of a fresh process that runs one of `PROGRAMS` on `path`.

    Raises
    ------
    ProcessFailed
        When it ends with an error, or not at all.
    """
    command = [sys.executable, "-P", "-c", PROGRAMS[program], str(path)]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **KEEP_BYTECODE, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise ProcessFailed(f"still running after {TIMEOUT_SECONDS} s") from error
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise ProcessFailed(lines[-1] if lines else f"exit status {done.returncode}")
    return seconds


def _add(outcome: WallTimes, program: str, path: Path, environment: Mapping[str, str] | None = None) -> None:
    if outcome.failure is None:
        try:
            outcome.times.append(wall_time(program, path, environment))
        except ProcessFailed as error:
            outcome.failure = str(error)


def _new_cache(folder: str, name: str) -> dict[str, str]:
    """Return an environment with a new cache folder that only this user can write to."""
    cache = Path(folder, name)
    cache.mkdir(mode=0o700)
    return {CACHE_VARIABLE: str(cache)}


def small_file(path: Path, repeat: int) -> dict[str, WallTimes]:
    """Fresh processes on the small file, in turns, each program once before that is counted.

    Parameters
    ----------
    path : Path
        The 100-row file.
    repeat : int
        Number of times per program.

    Returns
    -------
    dict of str to WallTimes
        By the names in `PROGRAMS`.
    """
    outcomes = {program: WallTimes() for program in PROGRAMS}
    for program, outcome in outcomes.items():
        _add(outcome, program, path)
        outcome.times.clear()
    for _ in range(repeat):
        for program, outcome in outcomes.items():
            _add(outcome, program, path)
    return outcomes


def empty_cache(path: Path, repeat: int) -> dict[str, WallTimes]:
    """Fresh processes of numparq on a large file, in turns with a warm and with a new, empty kernel cache.

    Returns
    -------
    dict of str to WallTimes
        ``warm`` and ``empty``.
    """
    outcomes = {"warm": WallTimes(), "empty": WallTimes()}
    with tempfile.TemporaryDirectory(prefix="numparq-cache-") as folder:
        warm = _new_cache(folder, "warm")
        _add(outcomes["warm"], "numparq", path, warm)
        outcomes["warm"].times.clear()
        for turn in range(repeat):
            _add(outcomes["warm"], "numparq", path, warm)
            _add(outcomes["empty"], "numparq", path, _new_cache(folder, f"empty-{turn}"))
    return outcomes
