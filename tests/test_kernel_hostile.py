"""Damaged pages: a kernel makes of them what the twin does, or both refuse them; and nothing else is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from driving import guard_pages
from driving.buffers import with_slack
from driving.damage import damaged
from driving.decoding import Outcome, decode_binary, decode_fixed
from driving.engines import ENGINES
from driving.tables import Request, chunk_table, page_table, scan, wanted
from test_kernel_fixed import CASES, Case
from twins import Damaged, Inexact, delta
from twins.pages import (
    DICTIONARY_PAGE,
    PLAIN,
    RLE,
    RLE_DICTIONARY,
    SNAPPY,
    UNCOMPRESSED,
    Chunk,
    data_page,
    dictionary_page,
    random_chunk,
    read_dictionary,
    read_rows,
)
from twins.values import (
    BOOLEAN,
    BYTE_ARRAY,
    FIXED_LEN_BYTE_ARRAY,
    INT64,
    INT96,
    Column,
    copied,
    int96_to_us,
    random_values,
)

from numparq.kernels import tables as t

engines = pytest.mark.parametrize("engine", ENGINES, ids=repr)
HERE = Path(__file__).parent


def verdict(chunk: Chunk, request: Request, convert=copied) -> Outcome | None:
    """What the twin makes of a chunk's bytes; None where they are no good."""
    entries, rows = None, []
    try:
        for page in chunk.pages:
            if page.type == DICTIONARY_PAGE:
                entries = read_dictionary(chunk.column, page, chunk.codec)
                for entry in entries:
                    convert(entry)
            else:
                rows += read_rows(chunk.column, page, chunk.codec, entries)
        if chunk.column.physical == BYTE_ARRAY:
            return Outcome(0, -1, tuple(rows), bytes(row is not None for row in rows), rows.count(None))
        null = b"\xff" * request.item if request.item in (1, 2, 4, 8) else bytes(request.item)
        made = tuple(null if row is None else convert(row) for row in rows)
        return Outcome(0, -1, made, bytes(row is not None for row in rows), rows.count(None))
    except (Damaged, Inexact):
        return None


def refused_by_the_walk(engine, chunk: Chunk) -> bool:
    """Whether a header is refused as it is read."""
    data = chunk.stored()
    rng, count = np.random.default_rng(0), len(chunk.rows)
    table = chunk_table(chunk.column, chunk.codec, count, len(data), Request(stop=count))
    status, pages, _ = scan(engine, with_slack(rng, data), len(data), table, len(chunk.pages))
    if status == 0:
        assert (pages == wanted(page_table(chunk), 0, count)).all()
    return status != 0


def compare(engine, chunk: Chunk, request: Request, convert=copied, seed: int = 0) -> bool:
    """Hold kernel and twin against each other; whether they decoded anything."""
    decode = decode_binary if chunk.column.physical == BYTE_ARRAY else decode_fixed
    outcome = decode(engine, chunk, request, seed)
    expected = verdict(chunk, request, convert)
    if expected is None:
        assert -30 < outcome.status < 0
        assert 0 <= outcome.page < len(chunk.pages)
    else:
        assert outcome == expected
    return expected is not None


def whole(chunk: Chunk, conversion: int, item: int) -> Request:
    return Request(conversion, item, t.NULLS_MASK, -1, 0, len(chunk.rows))


@engines
@pytest.mark.parametrize("case", [0, 1, 2, 3, 6, 8, 13, 16, 17, 18, 20, 22, 23, None])
def test_damage(engine, case):
    rng = np.random.default_rng(case or 99)
    made = Case(Column(BYTE_ARRAY), t.COPY, 0) if case is None else CASES[case]
    decoded = tried = 0
    for number in range(engine.size(90, 20)):
        column = replace(made.column, optional=bool(rng.random() < 0.7))
        values = made.values(rng, int(rng.choice([1, 3, 20])))
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
        request = whole(chunk, made.conversion, made.item)
        assert compare(engine, chunk, request, made.convert, number)
        for _ in range(4):
            bad = damaged(rng, chunk)
            if not refused_by_the_walk(engine, bad):
                tried += 1
                decoded += compare(engine, bad, request, made.convert, number)
    assert 0 < decoded < tried


def cut_chunks():
    """Pages of all kinds, to be cut."""
    rng = np.random.default_rng(5)
    for column, convert, conversion, item in (
        (Column(BOOLEAN, 0, True), copied, t.COPY, 1),
        (Column(INT64, 0, True), copied, t.COPY, 8),
        (Column(INT64), copied, t.COPY, 8),
        (Column(INT96, 0, True), int96_to_us, t.INT96_US, 8),
        (Column(BYTE_ARRAY, 0, True), copied, t.COPY, 0),
        (Column(BYTE_ARRAY), copied, t.COPY, 0),
        (Column(FIXED_LEN_BYTE_ARRAY, 3, True), copied, t.COPY, 3),
    ):
        values = random_values(rng, column, 6)
        entries = list(dict.fromkeys(values))
        rows = [values[i] if not column.optional or i % 3 else None for i in rng.integers(0, len(values), 10).tolist()]
        more = (RLE,) if column.physical == BOOLEAN else delta.ENCODINGS.get(column.physical, ())
        ways = ((1, UNCOMPRESSED), (2, UNCOMPRESSED), (1 + int(column.optional), SNAPPY))
        for encoding in (PLAIN, RLE_DICTIONARY, *more):
            for version, codec in ways if encoding in (PLAIN, RLE, RLE_DICTIONARY) else ways[encoding % 3 :][:1]:
                page = data_page(column, rows, encoding, codec, version, rng, entries)
                chunk = Chunk(column, codec, [dictionary_page(column, entries, codec, rng), page])
                yield chunk, convert, whole(chunk, conversion, item)


@engines
def test_cut_at_every_byte(engine):
    """The body of a data page, or of a dictionary page, ends anywhere, and its header says so."""
    for chunk, convert, request in list(cut_chunks())[:: 1 if engine.name == "compiled" else 7]:
        for number, page in enumerate(chunk.pages):
            for cut in range(len(page.body)):
                shorter = replace(page, body=page.body[:cut])
                if chunk.codec == UNCOMPRESSED:
                    shorter = replace(shorter, uncompressed=cut)
                bad = replace(chunk, pages=[shorter if i == number else other for i, other in enumerate(chunk.pages)])
                if not refused_by_the_walk(engine, bad):
                    compare(engine, bad, request, convert)


def fuzz(seed: int, count: int) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "driving.fuzz", str(seed), str(count)],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not guard_pages.AVAILABLE, reason="memory is guarded by mprotect, as Linux has it")
class TestGuardedMemory:
    """In processes of their own, for a stray load or store ends them."""

    def test_damage(self):
        said = fuzz(1, 1500)
        assert "decoded" in said
        assert "the data ends too early" in said
        assert "a length is negative" in said

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(2, 8))
    def test_much_damage(self, seed):
        fuzz(seed, 20_000)

    def test_the_guards_guard(self):
        code = (
            "from driving.guard_pages import GuardPages; import numpy as np; a = GuardPages().allocate({size});"
            "np.lib.stride_tricks.as_strided(a, ({size} + 1,))[{index}]"
        )
        for size, index, status in ((100, 99, 0), (100, 100, -11), (5000, 5000, -11)):
            done = subprocess.run(
                [sys.executable, "-c", code.format(size=size, index=index)],
                cwd=HERE,
                check=False,
                env={**os.environ, "PYTHONPATH": str(HERE)},
            )
            assert done.returncode == status
