"""The process that reads damaged files: ``python -m support.hostile.attack PLAN``, with bounds on memory and time.

PLAN is a JSON file: a list of tasks. Each has a "name" and the "path" of a file, and says what to do to it: "times" (to
read it as it is), "cuts", "count" (of flips, from "first" on), "lies", "pandas", "arrow" (how many of each), and the
"seed" of all that. What is being read stands in PLAN.now, for whoever has to tell what killed the process; the report
is printed as JSON.
"""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import json
import os
import resource
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import byte_damage, false_fields, key_value_damage

MEMORY = 4 << 30  # of address space
RESIDENT = 1 << 30  # bytes in memory that a read of a few kilobytes stays below
CPU_SECONDS = 900
LONG = 100_000  # rows that are not looked at one by one

# The ways to read that take turns.
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"verify_crc": False},
    {"dtype_backend": "numpy_nullable"},
    {"dtype_backend": "pyarrow", "verify_crc": False},
    {"threads": 2},
    {"row_range": (3, 17), "verify_crc": False},
    {"categories": "all", "verify_crc": False},
    {"include": ("file", "row_group", "row_number")},
    {"columns": "last", "nrows": 5},
)


def main(plan: str) -> None:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", RuntimeWarning)  # NumPy's: an overflow, or a NaN made an integer
    tasks = json.loads(Path(plan).read_text())
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    outcomes: collections.Counter[str] = collections.Counter()
    by_name: dict[str, set[str]] = {}
    problems: dict[str, str] = {}  # one of each kind
    now = os.open(plan + ".now", os.O_CREAT | os.O_WRONLY)
    with tempfile.TemporaryDirectory() as folder:
        for task in tasks:
            for number, (label, data) in enumerate(_cases(task)):
                what = f"{task['name']}: {label}, way {number % len(OPTIONS)}"
                os.pwrite(now, what.encode().ljust(300)[:300], 0)
                outcome, problem = attempt(data, number, folder)
                outcomes[outcome] += 1
                by_name.setdefault(task["name"], set()).add(outcome)
                if problem:
                    problems.setdefault(problem[-100:], f"{what}: {problem}")
                    outcomes["problem"] += 1
    resident = peak_resident()
    if resident > RESIDENT:
        problems["memory"] = f"the process took {resident >> 20} MiB"
    report = {
        "outcomes": outcomes,
        "by_name": {name: sorted(found) for name, found in by_name.items()},
        "problems": list(problems.values()),
    }
    print(json.dumps(report))


def peak_resident() -> int:
    """Return this process's peak resident memory in bytes, as far as it differs from the parent's."""
    status = Path("/proc/self/status")
    if status.exists():  # the other number is handed on by who started the process
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _cases(task: dict[str, Any]) -> Iterator[byte_damage.Case]:
    data = Path(task["path"]).read_bytes()
    for _ in range(task.get("times", 1)):
        yield "as it is", data
    yield from byte_damage.truncations(data, task.get("cuts", 0))
    yield from byte_damage.flipped_bytes(data, task.get("seed", 0), task.get("first", 0), task.get("count", 0))
    for name, made in (
        ("lies", false_fields.false_fields),
        ("pandas", key_value_damage.pandas_cases),
        ("arrow", key_value_damage.arrow_cases),
    ):
        if name in task:
            yield from made(data, task["seed"], task[name])


def attempt(data: bytes, number: int, folder: str) -> tuple[str, str | None]:
    """Read a file in one of the ways; return the outcome and the problem found, if any."""
    from numparq import ParquetError

    try:
        return _read(data, number, folder), None
    except ParquetError as error:
        return type(error).__name__, error_deficiency(error)
    except BaseException as error:
        return "leak", "".join(traceback.format_exception(error, limit=-6))


def _read(data: bytes, number: int, folder: str) -> str:
    import numparq

    options = dict(OPTIONS[number % len(OPTIONS)])
    source: Any = data
    if number % 4 == 3:
        source = os.path.join(folder, "file.parquet")
        Path(source).write_bytes(data)
    with numparq.ParquetFile(source) as file:
        if number % 5 == 0:
            inspect_file(file)
        for name, chosen in (("categories", "all"), ("columns", "last")):
            if options.get(name) == chosen:
                options[name] = file.schema.columns[-1:] if chosen == "last" else file.schema.columns
        frame = file.read(**{"threads": 1, **options})
    with contextlib.suppress(MemoryError):  # to look at values takes more of it than to have them
        use_values(frame)
    return "frame"


def inspect_file(file: Any) -> None:
    """Access all metadata of a file."""
    repr(file)
    str(file.schema)
    repr(file.metadata)
    file.metadata.to_dict()


def use_values(frame: Any) -> None:
    """Access every value of a frame, to expose invalid memory."""
    if len(frame) > LONG:
        return
    levels = [frame.index.get_level_values(place) for place in range(frame.index.nlevels)]
    for values in [*(frame.iloc[:, place] for place in range(frame.shape[1])), *levels]:
        arrow = getattr(values.array, "_pa_array", None)
        if arrow is not None:
            # That times are shorter than a day, and decimals as short as they should be, is not ours to check.
            arrow.validate(full=not str(arrow.type).startswith(("time", "decimal")))
        elif values.dtype.kind not in "mM":  # pandas has instants that it cannot show
            list(values)
    frame.copy(deep=True)
    frame.iloc[::2].reset_index(drop=True)


def error_deficiency(error: Any) -> str | None:
    """Return what an error lacks: it must name the file, and the page for errors in pages."""
    from numparq import CorruptPageError

    lacking = {"file"} - error.where.keys()
    if isinstance(error, CorruptPageError):
        lacking |= {"row_group", "column", "page"} - error.where.keys()
    if lacking or not error.message:
        return f"{type(error).__name__} does not name {', '.join(sorted(lacking))}: {error}"
    if error.message.startswith("kernel status") or "bug of numparq" in error.message:
        return str(error)
    return None


if __name__ == "__main__":
    main(sys.argv[1])
