"""``on_error="skip"`` in files with writer quirks: undamaged rows are read correctly."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import numparq
from support.files import builder as h
from support.files import writer_quirks as quirks

IMPALA = "impala version 2.11.0-SNAPSHOT (build 0)"
ENCODINGS = [h.PLAIN, h.RLE, h.BIT_PACKED]
WORDS = [word for part in quirks.WORDS for word in part]


def skip(data, **options):
    frame = numparq.read_parquet(data, on_error="skip", **options)
    values = [None if pd.isna(value) else value for value in frame["a"]]
    return values, [(loss.column, loss.rows) for loss in frame.attrs["numparq.lost"]]


def impala_page(first, short=0):
    """Build a page of ten rows that count up from `first`; the last `short` bytes of the values are missing."""
    section = int("".join(map(str, reversed(quirks.PRESENT))), 2).to_bytes(2, "little")
    values = [first + index for index, present in enumerate(quirks.PRESENT) if present]
    body = section + h.encode_plain(h.INT64, values)
    return h.data_page(10, body[: len(body) - short], h.PLAIN, h.BIT_PACKED)


ROWS = [10 * page + index if present else None for page in range(4) for index, present in enumerate(quirks.PRESENT)]


@pytest.mark.parametrize("damaged", [None, 0, 2, 3])
def test_impala_bit_packed_levels(damaged):
    pages = [impala_page(10 * number, 8 * (number == damaged)) for number in range(4)]
    values, lost = skip(quirks.one(pages, 40, IMPALA, repetition=h.OPTIONAL, encodings=ENCODINGS))
    lost_rows = range(0) if damaged is None else range(10 * damaged, 10 * damaged + 10)
    assert values == [value for row, value in enumerate(ROWS) if row not in lost_rows]
    assert lost == ([] if damaged is None else [("a", (lost_rows.start, lost_rows.stop))])


def test_prefixes_carried_over_pages():
    """A value whose prefix was in a lost page is lost with it, never wrong."""
    assert skip(quirks.prefixes(quirks.PARQUET_MR)) == (WORDS, [])
    for damaged in (0, 1, 3, 4):
        values, lost = skip(quirks.prefixes(quirks.PARQUET_MR, damaged))
        lost_rows = [row for _, (first, stop) in lost for row in range(first, stop)]
        assert lost_rows
        assert values == [word for row, word in enumerate(WORDS) if row not in lost_rows]


def test_compressed_pages_marked_uncompressed():
    assert skip(quirks.compressed(quirks.PARQUET_CPP)) == ([7, None, 8, 9], [])


def test_null_arrays_of_duckdb():
    frame = numparq.read_parquet(quirks.array("DuckDB version v2.0.0 (build 0)"), on_error="skip")
    assert [list(value) for value in frame["a"]] == [[1, 2], [], [3, 4]]
    assert frame.attrs["numparq.lost"] == []
    with pytest.raises(numparq.CorruptPageError, match="levels are damaged"):
        numparq.read_parquet(quirks.array("other"))


def test_bytes_behind_the_values():
    """Eight zero bytes follow the values of fastparquet's pages; any others of any writer are ignored as well."""
    written = "fastparquet-python version 2026.9.0 (build 0)"
    plain, indices = h.encode_plain(h.INT64, [7, 8]), b"\x01" + h.encode_indices([1, 0], 1)
    dictionary = h.dictionary_page(2, plain)
    for pages, values in (
        ([h.data_page(2, plain + bytes(8))], [7, 8]),
        ([dictionary, h.data_page(2, indices + bytes(8), h.RLE_DICTIONARY)], [8, 7]),
    ):
        column = h.FileColumn("a", h.INT64, [pages])
        for writer, padding in ((written, 0), (written, -1), ("other", 0)):
            body = pages[-1].body
            last = replace(pages[-1], body=body[: len(body) + padding])
            data = h.build_file([2], [replace(column, pages=[[*pages[:-1], last]])], created_by=writer).stored()
            assert numparq.read_parquet(data)["a"].tolist() == values
            assert skip(data) == (values, [])


def test_uncomputed_checksums_are_ignored():
    assert skip(quirks.checksum("Parquet.jl 0.6.0")) == ([1, 2, 1, 2], [])
