"""Column chunks from bytes to values: windows, batches and parts of any size, by one thread and by several."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from numparq.column.buffers import BinaryArray
from numparq.column.jobs import schedule
from numparq.column.jobs.byte_array_sink import ByteArraySink
from numparq.column.jobs.codes_sink import CodesSink
from numparq.column.jobs.fixed_sink import FixedSink
from numparq.column.jobs.task import DecodeTask, PageSink
from numparq.column.read import decompress, page_sources, pages
from numparq.column.read.chunk_selection import ChunkSelection
from numparq.column.read.context import ReadContext
from numparq.column.read.output import FixedOutput
from numparq.column.read.page_sources import ScannedPages
from numparq.column.read.pages import Pages
from numparq.errors import CorruptPageError, InvalidFileError
from numparq.format.module_reader import ModuleReader
from numparq.io.local_source import BytesSource
from numparq.kernels import tables as t
from numparq.plan.row_ranges import RowRanges
from numparq.util.worker_pool import WorkerPool
from support.kernels.chunk_tables import DecodeRequest, chunk_table
from support.oracles.pages import SNAPPY, UNCOMPRESSED, Chunk, random_chunk
from support.oracles.plain import BYTE_ARRAY, INT32, INT64, ColumnType, random_values


class Reads(BytesSource):
    """A source that always reads into a buffer and never returns a view."""

    def view(self, position, length, slack):
        return None


@pytest.fixture(params=[(1, 1), (300, 64), (2000, 1000), (1 << 22, 1 << 20)], ids=str)
def small(request, monkeypatch):
    """Set windows, batches and parts so small that a chunk takes several of them."""
    window, part = request.param
    monkeypatch.setattr(page_sources, "WINDOW_BYTES", window)
    monkeypatch.setattr(decompress, "BATCH_BYTES", part)
    monkeypatch.setattr(pages, "MIN_RUN_BYTES", part)


def tables(chunks: list[Chunk], requests: list[DecodeRequest], gap: bytes) -> tuple[bytes, np.ndarray]:
    """Lay chunks out in a file, after a magic number and gaps: the bytes, and the chunk table."""
    data, rows = b"PAR1", []
    for chunk, request in zip(chunks, requests, strict=True):
        stored = chunk.stored()
        data += gap
        rows.append(chunk_table(chunk.column, chunk.codec, len(chunk.rows), len(stored), request, len(data)))
        data += stored
    return data, np.array(rows)


def context(data: bytes, columns: int, pool: WorkerPool, number: int) -> ReadContext:
    source = Reads(data) if number % 2 else BytesSource(data + bytes(number % 3 * 64))
    return ReadContext(ModuleReader(source), [f"column {i}" for i in range(columns)], pool, True)


def run_task(
    context: ReadContext, columns: list[int], chunks: np.ndarray, sink: PageSink, shares_pages: bool = False
) -> DecodeTask:
    """Decode the chunks, all of row group 7, and return the task."""
    row_groups = [7] * len(chunks)
    source = ScannedPages(context.reader, chunks, row_groups)
    task = DecodeTask(context, row_groups, columns, source, sink, shares_pages)
    task()
    return task


def with_crcs(chunk: Chunk) -> Chunk:
    return replace(chunk, pages=[page.with_crc() for page in chunk.pages])


def window(rng, rows: int) -> tuple[int, int]:
    return (0, rows) if rng.random() < 0.5 else tuple(sorted(rng.integers(0, rows + 1, 2).tolist()))


@pytest.mark.parametrize("threads", [1, 3])
def test_fixed_values(small, threads):
    rng = np.random.default_rng(threads)
    with WorkerPool(threads) as pool:
        for number in range(25):
            column = ColumnType(INT64, 0, True)
            chunk = with_crcs(
                random_chunk(rng, column, random_values(rng, column, 30), 12, 25, 0.3, number % 3 > 0, number % 2)
            )
            start, stop = window(rng, len(chunk.rows))
            data, table = tables([chunk], [DecodeRequest(t.COPY, 8, t.NULLS_MASK, -1, start, stop)], b"")
            table[0, t.C_OUT], table[0, t.C_VALIDITY] = 16, 2
            out, mask = np.full(stop - start + 4, 7), np.full(stop - start + 4, 9, np.uint8)
            sink = FixedSink([FixedOutput(out.view(np.uint8), mask)])
            run_task(context(data, 1, pool, number), [0], table, sink, number % 5 > 0)
            rows = chunk.rows[start:stop]
            assert out[2:-2].tolist() == [
                -1 if row is None else int.from_bytes(row, "little", signed=True) for row in rows
            ]
            assert mask[2:-2].tolist() == [int(row is not None) for row in rows]
            assert out[[0, 1, -2, -1]].tolist() == [7] * 4
            assert mask[[0, 1, -2, -1]].tolist() == [9] * 4
            assert table[0, t.C_NULL_COUNT] == rows.count(None)
            assert not sink.failed


@pytest.mark.parametrize("threads", [1, 3])
def test_binary_values(small, threads):
    rng = np.random.default_rng(threads)
    with WorkerPool(threads) as pool:
        for number in range(25):
            column = ColumnType(BYTE_ARRAY, 0, number % 3 > 0)
            values = [b"%d" % i * int(rng.integers(0, 9)) for i in range(30)]
            chunk = with_crcs(random_chunk(rng, column, values, 12, 25, 0.3, number % 4 > 0, number % 2))
            start, stop = window(rng, len(chunk.rows))
            data, table = tables([chunk], [DecodeRequest(start=start, stop=stop)], b"")
            sink = ByteArraySink(True, number * 50)
            run_task(context(data, 1, pool, number), [0], table, sink, number % 5 > 0)
            rows = chunk.rows[start:stop]
            assert [row for array in sink.arrays for row in values_of(array)] == rows
            assert table[0, t.C_NULL_COUNT] == rows.count(None)


def values_of(array: BinaryArray) -> list[bytes | None]:
    data, ends = array.data.tobytes(), array.offsets.tolist()
    values: list[bytes | None] = [data[a:b] for a, b in itertools.pairwise(ends)]
    return (
        values if array.validity is None else [v if ok else None for v, ok in zip(values, array.validity, strict=True)]
    )


def test_dictionary_values(small):
    rng = np.random.default_rng(0)
    with WorkerPool(2) as pool:
        for number in range(25):
            column = ColumnType(BYTE_ARRAY, 0, True)
            entries = [b"%d" % i for i in range(40)]
            chunks = [random_chunk(rng, column, entries, 8, 25, 0.3, True, number % 2) for _ in range(1 + number % 4)]
            spans = [window(rng, len(chunk.rows)) for chunk in chunks]
            requests = [DecodeRequest(t.CODES, 4, t.NULLS_FILL, -1, *span) for span in spans]
            data, table = tables(chunks, requests, b"")
            sink = CodesSink(True, partial(ByteArraySink, True, 0))
            is_shared = number % 3 > 0 and len(chunks) == 1
            task = run_task(context(data, 1, pool, number), [0] * len(chunks), table, sink, is_shared)
            rows: list[bytes | None] = []
            for array in sink.arrays:
                if isinstance(array, BinaryArray):  # a page of the chunk is PLAIN
                    rows += values_of(array)
                else:
                    known = values_of(array.dictionary)
                    rows += [None if code < 0 else known[code] for code in array.codes.tolist()]
            wanted = [chunk.rows[start:stop] for chunk, (start, stop) in zip(chunks, spans, strict=True)]
            assert rows == list(itertools.chain.from_iterable(wanted))
            assert task.source.chunks[:, t.C_NULL_COUNT].tolist() == [part.count(None) for part in wanted]


def test_several_chunks_in_one_task():
    """Each has its own dictionary, row window and policy; the values go to rows of one block.

    Where one has nulls that it may not have, the others are decoded again, and their nulls counted once.
    """
    rng = np.random.default_rng(0)
    with WorkerPool(1) as pool:
        for number in range(25):
            chunks, requests, count = [], [], 60
            for _ in range(int(rng.integers(1, 6))):
                column = ColumnType(INT32, 0, bool(rng.random() < 0.5))
                chunks.append(
                    with_crcs(
                        random_chunk(
                            rng,
                            column,
                            random_values(rng, column, 9),
                            6,
                            20,
                            0.3,
                            bool(rng.random() < 0.7),
                            int(rng.choice([UNCOMPRESSED, SNAPPY])),
                        )
                    )
                )
                start = int(rng.integers(0, 60))
                nulls = t.NULLS_RAISE if rng.random() < 0.2 else t.NULLS_FILL
                requests.append(DecodeRequest(t.COPY, 4, nulls, 5, start, start + count))
            data, table = tables(chunks, requests, rng.bytes(number % 3 * 5))
            table[:, t.C_OUT] = np.arange(len(chunks)) * count * 4
            block = np.zeros((len(chunks), count), np.int32)
            output = FixedOutput(block.reshape(-1).view(np.uint8), np.empty(0, np.uint8))
            sink = FixedSink([output], np.zeros(len(chunks), np.intp))
            run_task(context(data, len(chunks), pool, number), [*range(len(chunks))], table, sink)
            for place, (values, nulls, chunk, request) in enumerate(
                zip(block, table[:, t.C_NULL_COUNT], chunks, requests, strict=True)
            ):
                rows = chunk.rows[request.start : request.stop]
                assert (place in sink.failed) == (request.nulls == t.NULLS_RAISE and None in rows)
                if place in sink.failed:
                    continue
                assert values.tolist() == [
                    5 if row is None else int.from_bytes(row, "little", signed=True) for row in rows
                ]
                assert nulls == rows.count(None)


def test_damage_is_located(small):
    """The error names the page with a wrong CRC, whichever window it is in."""
    rng = np.random.default_rng(0)
    column = ColumnType(INT64)
    chunk = with_crcs(random_chunk(rng, column, random_values(rng, column, 30), 12, 25, dictionary=True))
    for damaged in range(len(chunk.pages)):
        page = chunk.pages[damaged]
        body = bytes([page.body[0] ^ 1]) + page.body[1:]
        bad = replace(
            chunk, pages=[replace(page, body=body) if i == damaged else other for i, other in enumerate(chunk.pages)]
        )
        data, table = tables([bad], [DecodeRequest(t.COPY, 8, stop=len(chunk.rows))], b"")
        out = np.empty(len(chunk.rows))
        sink = FixedSink([FixedOutput(out.view(np.uint8), np.empty(0, np.uint8))])
        with WorkerPool(1) as pool, pytest.raises(CorruptPageError, match="CRC") as caught:
            run_task(context(data, 1, pool, damaged), [0], table, sink)
        assert caught.value.where == {"page": damaged, "row_group": 7, "column": "column 0"}


class WithoutLastPage(ScannedPages):
    """A source whose last page is missing."""

    def windows(self, scratch):
        for some in super().windows(scratch):
            yield Pages(some.raw, some.chunks, some.pages[:-1])


def test_pages_that_lack_selected_rows():
    """Memory that no page has written is not returned."""
    rng = np.random.default_rng(0)
    column = ColumnType(INT64, 0, False)
    chunk = random_chunk(rng, column, random_values(rng, column, 30), 4, 25, 0, False, 0)
    count = len(chunk.rows)
    data, table = tables([chunk], [DecodeRequest(t.COPY, 8, stop=count)], b"")
    sink = FixedSink([FixedOutput(np.empty(8 * count, np.uint8), np.empty(0, np.uint8))])
    selection = ChunkSelection(RowRanges.all(count), None)
    with WorkerPool(1) as pool:
        shared = context(data, 1, pool, 0)
        task = DecodeTask(shared, [7], [0], WithoutLastPage(shared.reader, table), sink, selection=selection)
        with pytest.raises(InvalidFileError, match=f"of the {count} selected rows") as caught:
            task()
    assert caught.value.where == {"row_group": 7, "column": "column 0"}


def test_coalesced_chunks_take_bounded_memory():
    """All chunks of a run, and the gaps fetched along, are in memory at the same time."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        count = int(rng.integers(1, 40))
        sizes = rng.integers(0, int(rng.choice([100, 70_000, 1 << 20, 9 << 20])), count)
        gaps = rng.integers(-50, int(rng.choice([1, 100, 40_000])), count)
        table = np.zeros((count, t.CHUNK_FIELDS), np.int64)
        table[:, t.C_START] = 5000 + np.cumsum(gaps) + np.cumsum(sizes) - sizes
        table[:, t.C_END] = table[:, t.C_START] + sizes
        gap, share = int(rng.choice([0, 50, 32 << 10])), int(rng.choice([64 << 10, 100_000, 1 << 20, 1 << 40]))
        edges = list(pairwise(schedule.coalesce_chunks(table, share, gap)))
        assert [first for first, _ in edges] == [0, *(last for _, last in edges)][: len(edges)]
        assert edges[-1][1] == count
        for first, last in edges:
            between = table[first + 1 : last, t.C_START] - table[first : last - 1, t.C_END]
            together = (between > 0) & (between <= gap)
            cost = sizes[first:last].sum() + between[together].sum()
            assert last - first == 1 or cost <= 2 * min(share, schedule.MAX_COALESCED_BYTES) + gap
