"""The process that runs fuzz cases: ``python -m support.fuzz.worker TARGET SEED FIRST SECONDS COUNT NOW``.

The file NOW holds the current case's number. Each problem is printed as a line of JSON, and at the end the counts.
"""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import importlib
import json
import os
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from types import ModuleType

from .read import USES, attempt, cases

MEMORY = 3 << 30  # of address space, beside what there is at the start
TARGETS = ("footer", "page", "whole_file", "encrypted")


def main(target: str, seed: int, first: int, seconds: float, count: int, now: str) -> None:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    module = target_of(target)
    uses = getattr(module, "USES", USES)
    _warm(uses is USES)
    # NumPy's warnings of an overflow, or a NaN made an integer.
    warnings.simplefilter("error", RuntimeWarning)
    start = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (start + MEMORY, start + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    outcomes: collections.Counter[str] = collections.Counter()
    place = os.open(now, os.O_CREAT | os.O_WRONLY)
    end, done = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        for number, case, rng in cases(module.case, seed, first):
            os.pwrite(place, f"{number:20}".encode(), 0)
            outcome, problem = attempt(case, rng, Path(folder), uses)
            outcomes[outcome] += 1
            done += 1
            if problem:
                print(json.dumps({"number": number, "what": case.what, "problem": problem}), flush=True)
            if done == count or time.monotonic() > end:
                break
    print(json.dumps({"done": done, "outcomes": outcomes}), flush=True)


def target_of(name: str) -> ModuleType:
    """Return a target: a module with `case`, and `USES` if its files are used in other ways than in `read`."""
    return importlib.import_module(name if "." in name else f"support.fuzz.{name}")


def _warm(are_read: bool) -> None:
    """Load everything that cases load, so that no case is charged for it."""
    if not are_read:
        return
    import numparq
    from numparq.kernels.kernel_groups import warmup

    from . import corpus

    warmup()
    for name in corpus.NAMES:
        sample = corpus.sample(name)
        numparq.verify(sample.data)
        if not sample.beside:
            numparq.read_parquet(sample.data, dtype_backend="pyarrow")
    with contextlib.suppress(ImportError):
        numparq.read_parquet(corpus.sample("geometries").data, geometries="geopandas")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]), sys.argv[6])
