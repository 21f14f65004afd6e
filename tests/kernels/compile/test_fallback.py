"""Kernels in plain Python, without a compiler: small pages of every kind, in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]

PROGRAM = """
import numpy as np
from dataclasses import replace
from numparq.kernels import tables as t
from numparq.kernels.kernel_groups import kernels
from support.kernels.binary_values import compare_strings
from support.kernels.chunk_tables import DecodeRequest
from support.kernels.engines import COMPILED
from support.kernels.value_cases import CASES, compare_values
from support.oracles.pages import random_chunk
from support.oracles.plain import BYTE_ARRAY, ColumnType, random_values

rng = np.random.default_rng(0)
COMPILED.check_page_crcs
assert kernels.mode == "python", kernels.mode
for number, case in enumerate(CASES):
    for null_share in (0.0, 0.3, 1.0):
        column = replace(case.column, optional=null_share > 0)
        chunk = random_chunk(rng, column, case.values(rng, 5), 2, 20, null_share, number % 2 == 0, number % 3 % 2)
        request = DecodeRequest(case.conversion, case.item, t.NULLS_MASK, -1, 3, 37)
        compare_values(COMPILED, case, chunk, request, number)
for number in range(6):
    column = ColumnType(BYTE_ARRAY, 0, number % 2 == 0)
    chunk = random_chunk(rng, column, random_values(rng, column, 5), 2, 20, 0.3, number % 3 == 0, number % 2)
    compare_strings(COMPILED, chunk, 3, 37, number)
"""


def test_python_mode_decodes_pages_of_every_kind():
    environment = {**os.environ, "NUMPARQ_KERNELS": "python", "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"}
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
