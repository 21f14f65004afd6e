"""``on_error="skip"`` in files of writers that are known for faults: what is not damaged is read as it was meant."""

from __future__ import annotations

import pandas as pd
import pytest

import numparq
from support.files import builder as h
from support.files import writer_quirks as faults

IMPALA = "impala version 2.11.0-SNAPSHOT (build 0)"
ENCODINGS = [h.PLAIN, h.RLE, h.BIT_PACKED]
WORDS = [word for part in faults.WORDS for word in part]


def skip(data, **options):
    frame = numparq.read_parquet(data, on_error="skip", **options)
    values = [None if pd.isna(value) else value for value in frame["a"]]
    return values, [(loss.column, loss.rows) for loss in frame.attrs["numparq.lost"]]


def impala_page(first, short=0):
    """Ten rows, counted on from `first`; of the values, so many bytes are not there."""
    section = int("".join(map(str, reversed(faults.PRESENT))), 2).to_bytes(2, "little")
    values = [first + place for place, present in enumerate(faults.PRESENT) if present]
    body = section + h.encode_plain(h.INT64, values)
    return h.data_page(10, body[: len(body) - short], h.PLAIN, h.BIT_PACKED)


ROWS = [10 * page + place if present else None for page in range(4) for place, present in enumerate(faults.PRESENT)]


@pytest.mark.parametrize("damaged", [None, 0, 2, 3])
def test_levels_of_impala(damaged):
    pages = [impala_page(10 * number, 8 * (number == damaged)) for number in range(4)]
    values, lost = skip(faults.one(pages, 40, IMPALA, repetition=h.OPTIONAL, encodings=ENCODINGS))
    gone = range(0) if damaged is None else range(10 * damaged, 10 * damaged + 10)
    assert values == [value for row, value in enumerate(ROWS) if row not in gone]
    assert lost == ([] if damaged is None else [("a", (gone.start, gone.stop))])


def test_strings_that_go_on():
    """What goes on from a page that is lost is lost with it, and never taken for something else."""
    assert skip(faults.prefixes(faults.PARQUET_MR)) == (WORDS, [])
    for spoilt in (0, 1, 3, 4):
        values, lost = skip(faults.prefixes(faults.PARQUET_MR, spoilt))
        gone = [row for _, (first, stop) in lost for row in range(first, stop)]
        assert gone
        assert values == [word for row, word in enumerate(WORDS) if row not in gone]


def test_pages_that_deny_that_they_are_compressed():
    assert skip(faults.compressed(faults.PARQUET_CPP)) == ([7, None, 8, 9], [])


def test_checksums_that_were_never_computed():
    assert skip(faults.checksum("Parquet.jl 0.6.0")) == ([1, 2, 1, 2], [])
