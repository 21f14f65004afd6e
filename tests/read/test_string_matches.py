"""Predicates on strings without a dictionary, which are matched run by run where they are decoded."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import col
from numparq.format.footer import tail as footer_module
from support.files.page_damage import data_pages, flip_bytes
from support.io.recorded_reads import RecordingFile
from support.row_selection import small_read_sizes, write_by_pyarrow

ROWS = 900
RNG = np.random.default_rng(4)
WORDS = [f"word {number % 50}" * int(1 + number % 7) for number in RNG.permutation(ROWS).tolist()]
WORDS[100:130] = ["long" * 400] * 30  # beyond what is expected of a run's bytes
TABLE = pa.table(
    {
        "text": pa.array(WORDS),
        "gaps": pa.array([None if number % 3 == 0 else word for number, word in enumerate(WORDS)]),
        "bytes": pa.array([word.encode() + b"\xff" for word in WORDS], pa.binary()),
        "number": pa.array(range(ROWS)),
    }
)
SIZES = {
    "default": {},
    "small": {"MATCH_BYTES": 500, "MIN_RUN_BYTES": 100, "MIN_SHARE_BYTES": 100},
    "windows": {"MATCH_BYTES": 200, "MIN_RUN_BYTES": 50, "WINDOW_BYTES": 3000, "MIN_SHARE_BYTES": 1},
}
WAYS = {
    "plain": {"use_dictionary": False},
    "fallback": {"dictionary_pagesize_limit": 300},
    "delta": {
        "use_dictionary": False,
        "column_encoding": {"gaps": "DELTA_BYTE_ARRAY", "text": "DELTA_LENGTH_BYTE_ARRAY"},
    },
}
PREDICATES = {
    "equal": (col("gaps") == WORDS[7], lambda frame: frame["gaps"] == WORDS[7]),
    "null": (col("gaps").is_null(), lambda frame: frame["gaps"].isna()),
    "not null": (~col("gaps").is_null(), lambda frame: ~frame["gaps"].isna()),
    "range": (
        (col("text") > "word 2") & (col("text") <= "word 4"),
        lambda frame: (frame["text"] > "word 2") & (frame["text"] <= "word 4"),
    ),
    "two columns": (
        (col("text") > "word 3") & (col("gaps") != WORDS[1]) & (col("number") < 700),
        lambda frame: (
            (frame["text"] > "word 3") & ~frame["gaps"].isna() & (frame["gaps"] != WORDS[1]) & (frame["number"] < 700)
        ),
    ),
    "either": (
        (col("text") == WORDS[4]) | (col("gaps") == WORDS[5]),
        lambda frame: (frame["text"] == WORDS[4]) | (frame["gaps"] == WORDS[5]),
    ),
    "bytes": (col("bytes") == WORDS[9].encode() + b"\xff", lambda frame: frame["text"] == WORDS[9]),
    "long": (col("text") == "long" * 400, lambda frame: frame["text"] == "long" * 400),
}


@pytest.fixture(scope="module", params=WAYS)
def data(request):
    # Without a page index no page is left out.
    sizes = {"row_group_size": 400, "write_batch_size": 10, "data_page_size": 300, "write_page_index": False}
    return write_by_pyarrow(TABLE, **sizes | WAYS[request.param])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", PREDICATES)
def test_rows(data, name, sizes, threads):
    predicate, expected = PREDICATES[name]
    everything = numparq.read_parquet(data)
    wanted = everything[expected(everything).fillna(False).astype(bool)].reset_index(drop=True)
    assert 0 < len(wanted) < ROWS
    with small_read_sizes(**SIZES[sizes]):
        for columns in (None, ["number"], ["gaps"]):
            found = numparq.read_parquet(data, columns=columns, filters=predicate, threads=threads)
            pd.testing.assert_frame_equal(found, wanted if columns is None else wanted[columns])


def test_projected_strings_are_read_once(monkeypatch):
    monkeypatch.setattr(footer_module, "TAIL_BYTES", 16)
    source = RecordingFile(write_by_pyarrow(TABLE, row_group_size=ROWS, use_dictionary=False, write_page_index=False))
    with numparq.ParquetFile(source) as file:
        chunk = next(
            one.meta_data for one in file.metadata.row_groups[0].columns if "gaps" in one.meta_data.path_in_schema
        )
        source.ranges.clear()
        assert len(file.read(["gaps"], filters=col("gaps") == WORDS[7]))
    assert sum(last - first for first, last in source.ranges) == chunk.total_compressed_size


def test_categories(data):
    predicate, expected = PREDICATES["range"]
    everything = numparq.read_parquet(data)
    wanted = everything["text"][expected(everything)].tolist()
    with small_read_sizes(**SIZES["small"]):
        found = numparq.read_parquet(data, ["text"], filters=predicate, categories=["text"])
    assert found["text"].dtype == "category"
    assert found["text"].tolist() == wanted


@pytest.mark.parametrize("sizes", SIZES)
def test_error_names_the_page(sizes):
    data = write_by_pyarrow(
        TABLE, row_group_size=400, write_batch_size=10, data_page_size=300, use_dictionary=False, compression="none"
    )
    page = data_pages(data, 1, "text")[20]
    bad = flip_bytes(data, page.end - 1, by=0x80)  # no UTF-8 any more
    with small_read_sizes(**SIZES[sizes]), pytest.raises(numparq.CorruptPageError, match="UTF-8") as failure:
        numparq.read_parquet(bad, ["number"], filters=col("text") > "word 1", verify_crc=False)
    assert {"row_group": 1, "column": "text", "page": 20}.items() <= failure.value.where.items()


def test_batches(data):
    predicate, expected = PREDICATES["equal"]
    everything = numparq.read_parquet(data)
    wanted = everything[expected(everything).fillna(False)].reset_index(drop=True)
    with small_read_sizes(**SIZES["small"]), numparq.ParquetFile(data) as file:
        batches = list(file.iter_batches(filters=predicate, batch_rows=100))
    pd.testing.assert_frame_equal(pd.concat(batches, ignore_index=True), wanted)
