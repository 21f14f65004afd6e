"""CRC-32 of pages against zlib: by carry-less multiplication, by tables, and in plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from functools import cache
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels import checksums
from numparq.kernels import tables as t
from numparq.kernels.checksums import fold_crc32
from numparq.kernels.compile.build import build_object, target_machine
from numparq.kernels.compile.crc_fold import fold_text
from numparq.kernels.compile.load import load_object
from numparq.kernels.compile.targets import host_target
from numparq.kernels.registry import KERNELS, Kernel
from numparq.kernels.status import BAD_CRC
from support.kernels import guard_pages
from support.kernels.engines import CHECKED, COMPILED, ENGINES, CheckedArray
from support.kernels.guarded_buffers import with_slack

HERE = Path(__file__).resolve().parent


def fold(data, pos, end, out):
    """Probe of `fold_crc32`: returns its end position, with the register in `out`."""
    out[0], stop = fold_crc32(data, pos, end)
    return stop


PROBES = {"check_page_crcs": KERNELS["check_page_crcs"], "fold": Kernel(fold, ("u1", "x", "x", "i8"))}


HOST = host_target()
PLAIN = HOST._replace(cpu="x86-64" if HOST.has_clmul else HOST.cpu, features="+pclmul" if HOST.has_clmul else "")
TABLES = HOST._replace(features=HOST.features.replace("+pclmul", "-pclmul"))


@cache
def compile_engine(target):
    """Return an engine with kernels compiled for a CPU with or without carry-less multiplication."""
    return SimpleNamespace(**load_object(build_object(PROBES, target)), size=COMPILED.size)


def tables_in_python():
    """Return an engine that uses tables, in Python, and checks the bounds of every load."""

    def check_crcs(pages, first, last, raw, state):
        with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
            patch.setattr(checksums, "fold_crc32", lambda data, pos, end: (checksums.ALL_ONES, pos))
            return checksums.check_page_crcs(pages, first, last, raw.view(CheckedArray), state)

    return SimpleNamespace(check_page_crcs=check_crcs, size=CHECKED.size)


WAYS = {
    "compiled": lambda: COMPILED,
    "checked": lambda: CHECKED,
    "tables": lambda: compile_engine(TABLES),
    "tables in Python": tables_in_python,
}


if HOST.has_clmul:  # generic x86-64 code may have the instruction too
    WAYS["plain CPU"] = lambda: compile_engine(PLAIN)


@pytest.fixture(scope="module", params=WAYS)
def engine(request):
    return WAYS[request.param]()


def bodies(rng, sizes):
    """Return (raw, page table) of pages of random bytes, with a few bytes between them."""
    pages = np.zeros((len(sizes), t.PAGE_FIELDS), np.int64)
    raw = b""
    for page, size in zip(pages, sizes, strict=True):
        body = rng.bytes(size)
        raw += rng.bytes(int(rng.integers(0, 9)))
        page[t.P_BODY], page[t.P_COMPRESSED], page[t.P_CRC] = len(raw), size, zlib.crc32(body)
        raw += body
    return raw, pages


def check(engine, raw, pages, first=0):
    state = np.full(1, -1, np.int64)
    status = engine.check_page_crcs(
        pages.reshape(-1), first, len(pages), with_slack(np.random.default_rng(0), raw), state
    )
    return status, int(state[0])


def test_many_body_sizes(engine):
    rng = np.random.default_rng(0)
    raw, pages = bodies(rng, [*range(engine.size(130, 40)), engine.size(100_000)])
    assert check(engine, raw, pages) == (0, -1)


def prefixes(data):
    """Return the CRCs of the first 0, 1, 2, ... bytes."""
    return list(accumulate(data, lambda crc, byte: zlib.crc32(bytes([byte]), crc), initial=0))


def test_every_length_at_every_alignment(engine):
    rng = np.random.default_rng(3)
    for start in range(0, 16, 16 // engine.size(16, least=3)):
        data = rng.bytes(engine.size(4096))
        pages = np.zeros((len(data) + 1, t.PAGE_FIELDS), np.int64)
        pages[:, t.P_BODY], pages[:, t.P_COMPRESSED] = start, np.arange(len(pages))
        pages[:, t.P_CRC] = prefixes(data)
        assert check(engine, rng.bytes(start) + data, pages) == (0, -1)
        pages[-1, t.P_CRC] ^= 1 << 31
        assert check(engine, rng.bytes(start) + data, pages) == (BAD_CRC, len(data))


def test_large_bodies(engine):
    raw, pages = bodies(np.random.default_rng(4), [engine.size(size) for size in (1_000_003, 3_000_000, 64 * 5001)])
    assert check(engine, raw, pages) == (0, -1)
    pages[2, t.P_CRC] ^= 1 << 7
    assert check(engine, raw, pages) == (BAD_CRC, 2)


def test_constant_bytes(engine):
    for byte in (b"\0", b"\xff"):
        data = byte * 300
        pages = np.zeros((301, t.PAGE_FIELDS), np.int64)
        pages[:, t.P_COMPRESSED], pages[:, t.P_CRC] = np.arange(301), prefixes(data)
        assert check(engine, data, pages) == (0, -1)


@pytest.mark.parametrize("size", [17, 64 * 2 + 16 * 3 + 8 + 5])
def test_every_flipped_bit_is_detected(engine, size):
    rng = np.random.default_rng(1)
    raw, pages = bodies(rng, [3, size, 5])
    start = pages[1, t.P_BODY]
    for bit in range(8 * size):
        damaged = bytearray(raw)
        damaged[start + bit // 8] ^= 1 << bit % 8
        assert check(engine, bytes(damaged), pages) == (BAD_CRC, 1)
        assert check(engine, bytes(damaged), pages, first=2) == (0, -1)


def test_pages_without_crc_are_skipped(engine):
    raw, pages = bodies(np.random.default_rng(2), [9, 9])
    pages[0, t.P_CRC] = -1
    pages[1, t.P_CRC] ^= 1
    assert check(engine, raw, pages) == (BAD_CRC, 1)
    pages[1, t.P_CRC] = -1
    assert check(engine, raw, pages) == (0, -1)


@pytest.mark.parametrize("target", list(dict.fromkeys([TABLES, PLAIN])), ids=lambda target: f"clmul {target.has_clmul}")
def test_compiled_fold_equals_python(target):
    """Register and end position agree; bytes before and after do not matter."""
    engine = compile_engine(target)
    data, out = np.random.default_rng(5).integers(0, 256, 700, np.uint8), np.zeros(1, np.int64)
    for start in (0, 1, 16):
        for end in range(start, len(data)):
            stop = engine.fold(data, start, end, out)
            assert (out[0], stop) == (fold_crc32(data, start, end) if target.has_clmul else (checksums.ALL_ONES, start))


@pytest.mark.skipif(not HOST.has_clmul, reason="this CPU has no carry-less multiplication")
def test_fold_uses_no_hidden_feature():
    """A virtual machine's znver4 without AVX-512: "Illegal instruction", when the fold had features of its own."""
    features = [name for name in HOST.features.split(",") if not name[1:].startswith("avx512")]
    hidden = ["-" + name[1:] for name in HOST.features.split(",") if name[1:].startswith("avx512")]
    machine = target_machine(HOST._replace(cpu="znver4", features=",".join([*features, *hidden, "-avx512f"])))
    parsed = llvm.parse_assembly(fold_text())
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(parsed, passes)
    assembly = machine.emit_assembly(parsed)
    assert "clmul" in assembly
    assert "vpternlog" not in assembly
    assert "%zmm" not in assembly


def check_guarded_bodies(way):
    """Check bodies that begin or end at guarded memory; the kernel needs no slack."""
    engine, guarded, state = WAYS[way](), guard_pages.GuardPages(), np.zeros(1, np.int64)
    page = np.zeros(t.PAGE_FIELDS, np.int64)
    for size in [*range(300), 4095, 4096, 8191]:
        body = bytes(range(255, 0, -1)) * 33
        page[t.P_COMPRESSED], page[t.P_CRC] = size, zlib.crc32(body[:size])
        for _ in range(2):
            assert engine.check_page_crcs(page, 0, 1, guarded.copy_of(body[:size]), state) == 0


@pytest.mark.quick_cases(1)
@pytest.mark.skipif(not guard_pages.AVAILABLE, reason="guard pages need Linux's mprotect")
@pytest.mark.parametrize("way", ["compiled", "tables"])
def test_no_reads_outside_the_body(way):
    done = subprocess.run(
        [sys.executable, "-c", f"import test_checksums_crc32; test_checksums_crc32.check_guarded_bodies({way!r})"],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": f"{HERE.parent}{os.pathsep}{HERE.parents[1]}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


BODIES = st.binary(max_size=40) | st.binary(min_size=64, max_size=300)  # the kernel works in blocks from 64 bytes on


@given(bodies=st.lists(BODIES, min_size=1, max_size=5), damaged=st.integers(0, 9), data=st.data())
def test_any_bodies(bodies, damaged, data):
    table = np.zeros((len(bodies), t.PAGE_FIELDS), np.int64)
    starts = np.cumsum([0, *map(len, bodies)])
    for row, start, body in zip(table, starts.tolist(), bodies, strict=False):
        row[t.P_BODY], row[t.P_COMPRESSED], row[t.P_CRC] = start, len(body), zlib.crc32(body)
    raw, expected = bytearray(b"".join(bodies)), (0, -1)
    if damaged < len(bodies) and bodies[damaged]:
        raw[starts[damaged] + data.draw(st.integers(0, len(bodies[damaged]) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        expected = BAD_CRC, damaged
    for engine in ENGINES:
        assert check(engine, bytes(raw), table) == expected
