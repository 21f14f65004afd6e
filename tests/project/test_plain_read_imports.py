"""Modules that a plain read imports in a fresh process: those that the list beside this module names, and no others.

Each costs every process that reads a file. An import that few reads need belongs in the function that needs it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import numparq

LIST = Path(__file__).with_name("plain_read_imports.txt")
# Imported, or not, by where kernels come from.
OF_COMPILED_KERNELS = ("numparq.kernels._kernels", "numparq.kernels.compile", "numparq.util.disk_cache")
# Of the standard library and others: some take milliseconds to import.
HEAVY = {"asyncio", "concurrent.futures", "cryptography", "difflib", "email", "fsspec", "html", "http", "llvmlite"}
HEAVY |= {
    "multiprocessing",
    "numba",
    "rich",
    "thriftpy2",
    "unittest",
    "urllib.request",
    "xxhash",
    "zstandard",
    "cramjam",
}
PROGRAM = """
import json, sys
import pandas
try:
    import pyarrow
except ImportError:
    pass
before = set(sys.modules)
import numparq
frame = numparq.read_parquet(sys.argv[1])
assert len(frame) == 3
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory) -> set[str]:
    path = tmp_path_factory.mktemp("imports") / "tiny.parquet"
    numparq.to_parquet(pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]}), path)
    numparq.read_parquet(path)  # compiles kernels where that is needed, which imports more
    command = [sys.executable, "-c", PROGRAM, str(path)]
    return set(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def test_only_listed_modules_are_imported(imported):
    own = {name for name in imported if name.startswith("numparq") and not name.startswith(OF_COMPILED_KERNELS)}
    assert own - set(LIST.read_text().split()) == set()


def test_nothing_heavy_is_imported(imported):
    if numparq.kernels.kernel_groups.kernels.mode == "object":
        imported = imported - {"llvmlite", "email"}  # the loader
    assert imported & HEAVY == set()
