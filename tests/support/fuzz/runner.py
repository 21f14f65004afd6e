"""Runs a target's cases in a process, detects crashes and hangs, and continues after the case."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from .read import cases
from .worker import target_of

TESTS = Path(__file__).resolve().parents[2]
CPU_SECONDS = 10.0  # of a case, above which it hangs
SECONDS = 120.0  # the same, of a process that gets no CPU
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class FuzzReport:
    """What came of a run.

    Attributes
    ----------
    done : int
        Cases.
    outcomes : Counter
        What came of them.
    problems : dict of str to list of int
        What is wrong, by its last words, and the numbers of the cases.
    """

    done: int = 0
    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    problems: dict[str, list[int]] = field(default_factory=dict)


def run(target: str, seed: int, seconds: float, count: int, found: Path, first: int = 0) -> FuzzReport:
    """Run cases of a target.

    Parameters
    ----------
    target : {"footer", "page", "whole_file"}
        Which.
    seed : int
        Cases of the same seed and number are the same.
    seconds : float
        How long to go on.
    count : int
        Cases at most; 0 for any number of them.
    found : Path
        The folder to put files in that make problems.
    first : int
        The number of the first case.

    Returns
    -------
    VerificationReport
    """
    report, end = FuzzReport(), time.monotonic() + seconds
    found.mkdir(parents=True, exist_ok=True)
    last = first + count if count else sys.maxsize
    while time.monotonic() < end and first < last:
        first = _one_process(report, target, seed, first, end - time.monotonic(), last - first, found)
    return report


def _one_process(
    report: FuzzReport, target: str, seed: int, first: int, seconds: float, count: int, found: Path
) -> int:
    """Run cases until the process ends; return the number of the next case."""
    now, output = found / f"now-{target}-{seed}-{os.getpid()}", found / f"output-{target}-{seed}-{os.getpid()}"
    now.write_text("")
    path = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    command = [
        sys.executable,
        "-m",
        "support.fuzz.worker",
        target,
        str(seed),
        str(first),
        str(seconds),
        str(count),
        str(now),
    ]
    environment = {**os.environ, "PYTHONPATH": path}
    with output.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, env=environment, cwd=found)
        hung = _watched(process, now)
    lines = output.read_text(errors="replace").splitlines()
    if not now.read_text():
        raise RuntimeError("the process never came to its first case:\n" + "\n".join(lines[-30:]))
    number, finished = int(now.read_text()), False
    for line in lines:
        with contextlib.suppress(ValueError):
            said = json.loads(line)
            if "number" in said:
                _save(report, found, target, seed, said["number"], said["what"], said["problem"])
            elif "done" in said:
                report.done += said["done"]
                report.outcomes.update(said["outcomes"])
                finished = True
    if not finished:
        report.done += number - first + 1
        why = "it hangs" if hung else f"the process ended with {process.returncode}"
        tail = "\n".join(line for line in lines if not line.startswith("{"))[-3000:]
        _save(report, found, target, seed, number, why, f"{tail}\n{why}")
    for path_of in (now, output):
        path_of.unlink()
    return sys.maxsize if finished else number + 1


def _watched(process: subprocess.Popen, now: Path) -> bool:
    """Wait for a process; kill it and report if a case takes too long."""
    before, cpu, since = "", 0.0, time.monotonic()
    while process.poll() is None:
        time.sleep(0.2)
        at, used = now.read_text(), _cpu(process.pid)
        if at != before:
            before, cpu, since = at, used, time.monotonic()
        patience = 1.0 if at else 60.0  # before the first case, kernels may have to be compiled
        if used - cpu > CPU_SECONDS * patience or time.monotonic() - since > SECONDS * patience:
            process.kill()
            process.wait()
            return True
    return False


def _cpu(pid: int) -> float:
    with contextlib.suppress(OSError, IndexError):
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / TICKS
    return 0.0


def _save(report: FuzzReport, found: Path, target: str, seed: int, number: int, what: str, problem: str) -> None:
    kind = problem.strip().splitlines()[-1][-160:]
    numbers = report.problems.setdefault(kind, [])
    numbers.append(number)
    if len(numbers) > 5:
        return
    name = f"{target}-{seed}-{number}"
    again = f"python -m support.fuzz {target} --seed {seed} --first {number} --count 1"
    (found / f"{name}.txt").write_text(f"{again}\n{what}\n{problem}\n")
    (found / f"{name}.parquet").write_bytes(next(cases(target_of(target).case, seed, number))[1].data)
