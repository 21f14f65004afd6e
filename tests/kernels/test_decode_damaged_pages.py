"""Damaged pages: kernel and oracle decode the same rows, or both refuse; no other memory is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from numparq.kernels import tables as t
from support.kernels import guard_pages
from support.kernels.chunk_tables import DecodeRequest
from support.kernels.damaged_chunks import (
    chunks_to_truncate,
    damage_chunk,
    oracle_verdict,
    refused_by_the_walk,
    whole_chunk,
)
from support.kernels.decode_pages import decode_binary, decode_fixed
from support.kernels.engines import engines
from support.kernels.value_cases import CASES, ValueCase
from support.oracles.pages import UNCOMPRESSED, Chunk, random_chunk
from support.oracles.plain import BYTE_ARRAY, ColumnType, keep

TESTS = Path(__file__).resolve().parents[1]


def compare(engine, chunk: Chunk, request: DecodeRequest, convert=keep, seed: int = 0) -> bool:
    """Compare kernel and oracle; returns whether they decoded anything."""
    decode = decode_binary if chunk.column.physical == BYTE_ARRAY else decode_fixed
    outcome = decode(engine, chunk, request, seed)
    expected = oracle_verdict(chunk, request, convert)
    if expected is None:
        assert -30 < outcome.status < 0
        assert 0 <= outcome.page < len(chunk.pages)
    else:
        assert outcome == expected
    return expected is not None


@pytest.mark.quick_cases(6)
@engines
@pytest.mark.parametrize("case", [0, 1, 2, 3, 6, 8, 13, 16, 17, 18, 20, 22, 23, None])
def test_damaged_chunks(engine, case):
    rng = np.random.default_rng(case or 99)
    chosen = ValueCase(ColumnType(BYTE_ARRAY), t.COPY, 0) if case is None else CASES[case]
    decoded = tried = 0
    for number in range(engine.size(90, 20)):
        column = replace(chosen.column, optional=bool(rng.random() < 0.7))
        values = chosen.values(rng, int(rng.choice([1, 3, 20])))
        chunk = random_chunk(
            rng,
            column,
            values,
            int(rng.integers(1, 4)),
            int(rng.integers(1, 40)),
            float(rng.choice([0.0, 0.3, 1.0])),
            bool(rng.random() < 0.6),
            int(rng.choice([0, 1])),
            more=bool(rng.random() < 0.5),
        )
        request = whole_chunk(chunk, chosen.conversion, chosen.item)
        assert compare(engine, chunk, request, chosen.convert, number)
        for _ in range(4):
            bad = damage_chunk(rng, chunk)
            if not refused_by_the_walk(engine, bad):
                tried += 1
                decoded += compare(engine, bad, request, chosen.convert, number)
    assert 0 < decoded < tried


@pytest.mark.slow
@engines
def test_cut_at_every_byte(engine):
    """The body of a data page or dictionary page ends at any byte, and its header says so."""
    num_compared = 0
    for chunk, convert, request in list(chunks_to_truncate())[:: 1 if engine.name == "compiled" else 7]:
        for number, page in enumerate(chunk.pages):
            for cut in range(len(page.body)):
                shorter = replace(page, body=page.body[:cut])
                if chunk.codec == UNCOMPRESSED:
                    shorter = replace(shorter, uncompressed=cut)
                bad = replace(chunk, pages=[shorter if i == number else other for i, other in enumerate(chunk.pages)])
                if not refused_by_the_walk(engine, bad):
                    compare(engine, bad, request, convert)
                    num_compared += 1
    assert num_compared >= 500


def fuzz(seed: int, count: int) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "support.kernels.fuzz_decode", str(seed), str(count)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not guard_pages.AVAILABLE, reason="guard pages need Linux's mprotect")
class TestGuardedMemory:
    """Run in separate processes, because a stray load or store ends them."""

    def test_damaged_chunks(self):
        output = fuzz(1, 1500)
        assert "decoded" in output
        assert "the data ends too early" in output
        assert "a length is negative" in output

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(2, 8))
    def test_more_damaged_chunks(self, seed):
        fuzz(seed, 20_000)

    def test_guard_pages_trap_reads(self):
        code = (
            "from support.kernels.guard_pages import GuardPages; import numpy as np; a = GuardPages().allocate({size});"
            "np.lib.stride_tricks.as_strided(a, ({size} + 1,))[{index}]"
        )
        for size, index, status in ((100, 99, 0), (100, 100, -11), (5000, 5000, -11)):
            done = subprocess.run(
                [sys.executable, "-c", code.format(size=size, index=index)],
                cwd=TESTS,
                check=False,
                env={**os.environ, "PYTHONPATH": str(TESTS)},
            )
            assert done.returncode == status
