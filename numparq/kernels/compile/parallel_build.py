"""Compile groups of kernels in several processes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from numparq.kernels.groups import import_group
from numparq.kernels.registry import HELPERS, Kernel

MAX_BUILD_PROCESSES = 4  # each takes about 250 MB, and compiles shared helpers again
_PATIENCE = 120.0  # seconds that a worker may take longer than this process
_PROGRAM = """
import json, sys
sys.path[:], *part = json.loads(sys.argv[1])
from numparq.kernels.compile.parallel_build import Part, run_worker
run_worker(Part(*part))
"""


class Part(NamedTuple):
    """Kernels that one process compiles.

    Attributes
    ----------
    groups, names : list of str
        The groups to import, and the kernels by name.
    machine : str
        The machine of a prebuilt library; empty for an object file that this process loads.
    number : int
        Number of the part.
    """

    groups: list[str]
    names: list[str]
    machine: str = ""
    number: int = 0


def build_parts(groups: list[str], machine: str = "", processes: int | None = None) -> list[bytes]:
    """Compile the kernels of groups in several processes, this one included; return what each compiled.

    That is an object file, or for a prebuilt library's `machine` the list of `level_objects`. If a worker fails,
    this process compiles its kernels. `processes` defaults to `build_processes`.
    """
    names = partition_kernels(import_groups(groups), build_processes() if processes is None else processes)
    parts = [Part(groups, part, machine, number) for number, part in enumerate(names)]
    with _workers(parts[1:]) as workers:
        try:
            done = [_compile(parts[0])]
        except KeyboardInterrupt:  # without 200 lines of Numba's
            raise KeyboardInterrupt("kernels were being compiled, which the next call begins again") from None
        for part, worker in zip(parts[1:], workers, strict=True):
            code = _result(worker)
            done.append(_compile(part) if code is None else code)
    return done


def import_groups(groups: Iterable[str]) -> dict[str, Kernel]:
    """Import the kernel modules of groups and return their kernels by name."""
    return {name: kernel for group in groups for name, kernel in import_group(group).items()}


def _compile(part: Part) -> bytes:
    known = import_groups(part.groups)
    kernels = {name: known[name] for name in part.names}
    if part.machine:
        from .level_objects import level_objects

        return level_objects(kernels, part.machine, part.number)
    from .build import build_object

    return build_object(kernels)


def build_processes() -> int:
    """Return the number of build processes: ``NUMPARQ_BUILD_PROCESSES``, or one per core up to the maximum."""
    chosen = os.environ.get("NUMPARQ_BUILD_PROCESSES", "")
    if chosen.isdigit():
        return max(int(chosen), 1)
    name = os.path.basename(sys.executable or "").lower()
    if not name.startswith("python") or getattr(sys, "frozen", False):
        return 1  # a program that embeds Python may do anything when started
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MAX_BUILD_PROCESSES)


def partition_kernels(kernels: Mapping[str, Kernel], parts: int) -> list[list[str]]:
    """Divide kernels into at most `parts` parts of similar compile time, preferably with shared helpers in one part.

    At least one part is returned, and none is empty unless there are no kernels.
    """
    helpers = {id(function) for function in HELPERS} | {id(kernel.function) for kernel in kernels.values()}
    needs = {name: _reachable_sizes(kernel.function, helpers) for name, kernel in kernels.items()}
    names: list[list[str]] = [[] for _ in range(max(min(parts, len(kernels)), 1))]
    taken: list[dict[int, int]] = [{} for _ in names]
    for name in sorted(needs, key=lambda name: (-sum(needs[name].values()), name)):
        after = [sum((have | needs[name]).values()) for have in taken]
        best = after.index(min(after))
        names[best].append(name)
        taken[best] |= needs[name]
    return [part for part in names if part] or [[]]


def _reachable_sizes(function: Callable[..., Any], helpers: set[int]) -> dict[int, int]:
    """Return the bytecode size of a function and of each helper it needs, by id."""
    found: dict[int, int] = {}
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = len(one.__code__.co_code)
            named = (one.__globals__.get(name) for name in one.__code__.co_names)
            waiting += [other for other in named if callable(other) and id(other) in helpers]
    return found


@contextmanager
def _workers(parts: list[Part]) -> Iterator[list[subprocess.Popen[bytes] | None]]:
    """Start a process for each part, and kill those that still run at the end."""
    reading, writing = os.pipe()
    workers = [_start(part, reading) for part in parts]
    os.close(reading)
    try:
        yield workers
    finally:
        for worker in workers:
            if worker is not None:
                worker.kill()
                worker.communicate()
        os.close(writing)


def _start(part: Part, stdin: int) -> subprocess.Popen[bytes] | None:
    command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps([sys.path, *part])]
    with suppress(OSError):
        return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return None


def _result(worker: subprocess.Popen[bytes] | None) -> bytes | None:
    """Wait for a worker and return its object, or None if that is not intact."""
    if worker is None:
        return None
    try:
        output, _ = worker.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    size = hashlib.sha256().digest_size
    code, seal = output[:-size], output[-size:]
    return code if code and hashlib.sha256(code).digest() == seal else None


def run_worker(part: Part) -> None:
    """Compile a part and write the result, followed by its SHA-256 digest, to standard output.

    The process exits when its standard input ends: the one that started it was killed.
    """
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # other output must not mix with the object
    code = _compile(part)
    output.write(code + hashlib.sha256(code).digest())
    output.close()


def _exit_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)
