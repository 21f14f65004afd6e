"""Batches of nested rows with ``on_error="skip"`` decode each page about once, and lose what one read loses."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.column.nested.levels import LevelDecoder
from support.files.page_damage import damage_body, data_pages

LEAF = "l.list.element"


def written(rows: int, **options) -> bytes:
    """Return one row group of lists of four elements, in pages of about 250 rows."""
    offsets = pa.array(np.arange(0, 4 * rows + 1, 4), pa.int32())
    table = pa.table({"n": np.arange(rows), "l": pa.ListArray.from_arrays(offsets, pa.array(np.arange(4 * rows)))})
    out = io.BytesIO()
    options = {"use_dictionary": False, "compression": "none", "data_page_size": 8000, **options}
    pq.write_table(table, out, row_group_size=rows, write_page_checksum=True, **options)
    return out.getvalue()


@pytest.fixture
def decoded(monkeypatch) -> list[int]:
    """Return the numbers of pages whose levels are decoded, as they are."""
    counts: list[int] = []
    decode = LevelDecoder.decode

    def count(self, pages, first, last, decompressed):
        counts.append(last - first)
        return decode(self, pages, first, last, decompressed)

    monkeypatch.setattr(LevelDecoder, "decode", count)
    return counts


def read_batches(data: bytes) -> tuple[pd.DataFrame, list]:
    with numparq.ParquetFile(data) as file:
        batches = file.iter_batches(on_error="skip", batch_rows=400, memory_limit=3 << 20, threads=1)
        return pd.concat([*batches], ignore_index=True), batches.lost


@pytest.mark.parametrize("index", [True, False])
def test_each_page_is_decoded_about_once(decoded, index):
    """The time was quadratic: each unit decoded all pages of the row group."""
    for rows in (10_000, 20_000):
        data = written(rows, write_page_index=index)
        decoded.clear()
        frame, lost = read_batches(data)
        assert frame["n"].tolist() == list(range(rows))
        assert lost == []
        assert sum(decoded) < 4 * len(data_pages(data, 0, LEAF))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("index", [True, False])
def test_damage_loses_what_one_read_loses(index, version):
    """Without an index, the units could not be planned: a CorruptPageError."""
    rows = 10_000
    data = written(rows, write_page_index=index, data_page_version=version)
    damaged = damage_body(data, data_pages(data, 0, LEAF)[20])
    whole = numparq.read_parquet(damaged, on_error="skip", include=["row_number"])
    frame, lost = read_batches(damaged)
    assert frame["n"].tolist() == whole["n"].tolist()
    assert [list(row) for row in frame["l"]] == [list(row) for row in whole["l"]]
    assert numparq.ParquetFile(data).num_rows - len(frame) == sum(stop - start for *_, (start, stop), _ in lost)
    assert {(one.row_group, one.column, one.reason) for one in lost} == {
        (one.row_group, one.column, one.reason) for one in whole.attrs["numparq.lost"]
    }


def test_damaged_units_alone_walk_the_whole_chunk(decoded):
    data = written(20_000, write_page_index=True)
    pages = data_pages(data, 0, LEAF)
    frame, _ = read_batches(damage_body(data, pages[40]))
    assert len(frame) >= 19_000
    assert sum(decoded) < 8 * len(pages)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("index", [True, False])
def test_damaged_chunks_are_walked_once(decoded, index, version):
    """The work was quadratic without an index: each unit walked all pages of the row group."""
    for rows in (10_000, 20_000):
        data = written(rows, write_page_index=index, data_page_version=version)
        pages = data_pages(data, 0, LEAF)
        damaged = data
        for page in pages[len(pages) // 2 :: 4]:
            damaged = damage_body(damaged, page)
        decoded.clear()
        frame, lost = read_batches(damaged)
        assert sum(decoded) < 8 * len(pages)
        whole = numparq.read_parquet(damaged, on_error="skip", include=["row_number"])
        assert frame["n"].tolist() == whole["n"].tolist()
        assert [list(row) for row in frame["l"]] == [list(row) for row in whole["l"]]
        assert rows - len(frame) == sum(stop - start for *_, (start, stop), _ in lost)


@pytest.mark.parametrize("kind", ["strings", "structs", "long rows", "nulls"])
def test_later_units_decode_the_rows_of_one_read(kind):
    rows = 6_000
    values = {
        "strings": [[str(n), None, "x" * (n % 7)] if n % 5 else [] for n in range(rows)],
        "structs": [{"a": n, "b": [str(n)]} if n % 3 else None for n in range(rows)],
        "long rows": [list(range(n % 900)) if n % 50 == 0 else [n] for n in range(rows)],
        "nulls": [None if n % 4 else [None, n] for n in range(rows)],
    }[kind]
    table = pa.table({"n": np.arange(rows), "l": values})
    leaf = {"structs": "l.b.list.element"}.get(kind, LEAF)
    for version, use_dictionary in [("1.0", True), ("2.0", True), ("1.0", False), ("2.0", False)]:
        out = io.BytesIO()
        options = {"data_page_version": version, "use_dictionary": use_dictionary, "write_batch_size": 64}
        pq.write_table(table, out, row_group_size=rows, write_page_checksum=True, data_page_size=1500, **options)
        pages = data_pages(out.getvalue(), 0, leaf)
        damaged = damage_body(out.getvalue(), pages[len(pages) // 2])
        whole = numparq.read_parquet(damaged, on_error="skip", dtype_backend="pyarrow")
        with numparq.ParquetFile(damaged) as file:
            batches = file.iter_batches(on_error="skip", batch_rows=400, memory_limit=3 << 20, dtype_backend="pyarrow")
            frame = pd.concat([*batches], ignore_index=True)
        assert len(whole) < rows
        assert frame["n"].tolist() == whole["n"].tolist()
        assert frame["l"].tolist() == whole["l"].tolist()
