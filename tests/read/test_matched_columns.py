"""Predicates on one column, which are matched batch by batch where its pages are decompressed."""

from __future__ import annotations

from decimal import Decimal
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import col
from numparq.column.jobs.match_sink import MatchSink
from numparq.format.footer import tail as footer_module
from numparq.prune import dictionaries
from numparq.scan import filter_rows
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
        "draw": pa.array([None if number % 7 == 3 else number * 37 % 101 for number in range(ROWS)], pa.int32()),
        "real": pa.array([None if number % 5 == 1 else number % 83 / 4 for number in range(ROWS)]),
        "fixed": pa.array([b"%03d" % (number * 17 % 90) for number in range(ROWS)], pa.binary(3)),
        "flag": pa.array([None if number % 4 == 2 else number % 3 == 0 for number in range(ROWS)]),
        "nothing": pa.array([None] * (ROWS - 1) + ["last"]),
        "count": pa.array(
            [None if number % 6 == 0 else (number * 31 % 97) << 25 for number in range(ROWS)], pa.uint32()
        ),
        "half": pa.array([None if n % 5 == 3 else np.float16(n % 61 - 30.5) for n in range(ROWS)], pa.float16()),
        "small": pa.array([number % 251 for number in range(ROWS)], pa.uint8()),
        "key": pa.array(RNG.permutation(ROWS) * 10**15 - 400 * 10**15),
        "signs": pa.array(
            [None if number % 9 == 4 else (-0.0, 0.0, np.nan, -1.5, 1.5)[number % 5] for number in range(ROWS)],
            pa.float32(),
        ),
        "amount": pa.array(
            [None if number % 8 == 1 else Decimal(number * 7 % 300 - 150) / 100 for number in range(ROWS)],
            pa.decimal128(30, 2),
        ),
    }
)
IS_NAN = np.array([number % 9 != 4 and number % 5 == 2 for number in range(ROWS)])
SIZES = {
    "default": {},
    "small": {"MATCH_BYTES": 500, "MIN_RUN_BYTES": 100, "MIN_SHARE_BYTES": 100},
    "batches": {"BATCH_BYTES": 200},
    "windows": {"MATCH_BYTES": 200, "MIN_RUN_BYTES": 50, "WINDOW_BYTES": 3000, "MIN_SHARE_BYTES": 1},
}
WAYS = {
    "plain": {"use_dictionary": False},
    "fallback": {"dictionary_pagesize_limit": 300},
    "delta": {
        "use_dictionary": False,
        "column_encoding": {
            "gaps": "DELTA_BYTE_ARRAY",
            "text": "DELTA_LENGTH_BYTE_ARRAY",
            "draw": "DELTA_BINARY_PACKED",
            "real": "BYTE_STREAM_SPLIT",
        },
    },
    "dictionary": {},
    "version 2": {"use_dictionary": False, "data_page_version": "2.0", "compression": "zstd"},
    "stored": {"dictionary_pagesize_limit": 300, "data_page_version": "2.0", "compression": "none"},
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
    "other": (col("gaps") != WORDS[7], lambda frame: ~frame["gaps"].isna() & (frame["gaps"] != WORDS[7])),
    "pattern": (col("text").startswith("word 3"), lambda frame: frame["text"].str.startswith("word 3")),
    "words": (col("gaps").isin([WORDS[1], WORDS[2], "no"]), lambda frame: frame["gaps"].isin([WORDS[1], WORDS[2]])),
    "itself": (col("gaps") == col("gaps"), lambda frame: ~frame["gaps"].isna()),
    "value or null": (
        (col("gaps") == WORDS[7]) | col("gaps").is_null(),
        lambda frame: frame["gaps"].isna() | (frame["gaps"] == WORDS[7]),
    ),
    "last": (col("nothing") == "last", lambda frame: frame["nothing"] == "last"),
    "draw": (col("draw") == 37, lambda frame: frame["draw"] == 37),
    "draws": (col("draw").isin([5, 6, 7, 90]), lambda frame: frame["draw"].isin([5, 6, 7, 90])),
    "no draw": (col("draw").is_null() | (col("draw") > 95), lambda frame: frame["draw"].isna() | (frame["draw"] > 95)),
    "half": (col("draw") < 50, lambda frame: frame["draw"] < 50),
    "real": ((col("real") >= 4.5) & (col("real") < 5), lambda frame: (frame["real"] >= 4.5) & (frame["real"] < 5)),
    "fixed": (col("fixed") == b"017", lambda frame: frame["fixed"] == b"017"),
    "unsigned": (col("count") > 1 << 31, lambda frame: frame["count"] > 1 << 31),
    "no unsigned": (
        (col("count") <= 1 << 25) | col("count").is_null(),
        lambda frame: frame["count"].isna() | (frame["count"] <= 1 << 25),
    ),
    "half floats": (col("half") <= -20.5, lambda frame: frame["half"] <= -20.5),
    "small": (col("small").isin([*range(0, 250, 2)]), lambda frame: frame["small"].isin(range(0, 250, 2))),
    "key": (col("key") == 10**15, lambda frame: frame["key"] == 10**15),
    "other keys": (col("key") != 10**15, lambda frame: frame["key"] != 10**15),
    "negative keys": (col("key").between(-(10**17), -1), lambda frame: frame["key"].between(-(10**17), -1)),
    "many keys": (
        col("key").isin([number * 3 * 10**15 for number in range(-90, 90)]),
        lambda frame: frame["key"].isin([number * 3 * 10**15 for number in range(-90, 90)]),
    ),
    "few keys": (col("key").isin([0, 10**15, 4]), lambda frame: frame["key"].isin([0, 10**15])),
    "zero": (col("signs") == 0, lambda frame: frame["signs"] == 0),
    "not zero": (col("signs") != 0, lambda frame: frame["signs"].notna() & (frame["signs"] != 0) | IS_NAN),
    "positive": (col("signs") > -0.0, lambda frame: frame["signs"] > 0),
    "amount": (col("amount") < Decimal("-1.20"), lambda frame: frame["amount"].fillna(0) < Decimal("-1.20")),
    "no amount": (
        col("amount").is_null() | (col("amount") == Decimal("0.07")),
        lambda frame: frame["amount"].isna() | (frame["amount"] == Decimal("0.07")),
    ),
    "fixed itself": (col("fixed") == col("fixed"), lambda frame: frame["fixed"].notna()),
    "draw itself": (col("draw") == col("draw"), lambda frame: frame["draw"].notna()),
    "no flag": (
        col("flag").is_null() | (col("flag") == True),  # noqa: E712
        lambda frame: frame["flag"].isna() | (frame["flag"] == True),  # noqa: E712
    ),
    "flag": (col("flag") == False, lambda frame: frame["flag"] == False),  # noqa: E712
}


@pytest.fixture(scope="module", params=WAYS)
def data(request):
    # Without a page index no page is left out.
    sizes = {"row_group_size": 400, "write_batch_size": 10, "data_page_size": 300, "write_page_index": False}
    return write_by_pyarrow(TABLE, **sizes | WAYS[request.param])


@pytest.fixture(autouse=True)
def single_row_groups(monkeypatch):
    """Row groups are filtered one by one, as large ones are."""
    monkeypatch.setattr(filter_rows, "BATCH_ROWS", 0)


@pytest.mark.quick_cases(19)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", PREDICATES)
def test_rows(data, name, sizes, threads):
    predicate, expected = PREDICATES[name]
    everything = numparq.read_parquet(data)
    wanted = everything[expected(everything).fillna(False).astype(bool)].reset_index(drop=True)
    assert 0 < len(wanted) <= ROWS
    with small_read_sizes(**SIZES[sizes]):
        for columns in (
            None,
            ["number"],
            ["gaps"],
            ["draw", "fixed", "flag", "real", "text"],
            [*TABLE.column_names[-5:]],
        ):
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


@pytest.mark.parametrize(
    ("column", "options"),
    [("text", {"compression": "none"}), ("draw", {"compression": "none"}), ("real", {"compression": "snappy"})],
    ids=repr,
)
@pytest.mark.parametrize("sizes", SIZES)
def test_error_names_the_page(sizes, column, options):
    data = write_by_pyarrow(
        TABLE, row_group_size=400, write_batch_size=10, data_page_size=100, use_dictionary=False, **options
    )
    page = data_pages(data, 1, column)[5]
    bad = flip_bytes(data, page.end - 1, by=0x80)  # no UTF-8 any more
    predicate, message = col("text") > "word 1", "UTF-8"
    if column != "text":  # the levels' length
        at = page.body + 3 * (column == "real")  # behind the size and the first tag of a Snappy block
        bad, predicate, message = flip_bytes(data, at, by=0x40), col(column) > 1, "last value|truncated|end"
    with small_read_sizes(**SIZES[sizes]), pytest.raises(numparq.CorruptPageError, match=message) as failure:
        numparq.read_parquet(bad, ["number"], filters=predicate, verify_crc=False)
    assert {"row_group": 1, "column": column, "page": 5}.items() <= failure.value.where.items()


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.binary(3), pa.string()], ids=str)
def test_dictionary_without_entries(kind):
    table = pa.table({"number": range(50), "nothing": pa.nulls(50, kind)})
    data = write_by_pyarrow(table, write_statistics=False, write_page_index=False, data_page_size=20)
    value = {"int32": 3, "double": 0.5}.get(str(kind), "abc" if kind == pa.string() else b"abc")
    found = numparq.read_parquet(data, filters=(col("nothing") == value) | col("nothing").is_null())
    assert found["number"].tolist() == [*range(50)]
    assert found["nothing"].isna().all()
    assert not len(numparq.read_parquet(data, filters=col("nothing") == value))


@pytest.mark.parametrize("column", ["text", "draw", "fixed"])
def test_pages_of_a_dictionary_without_a_match(column):
    """They are not decompressed: damage in them is not seen, until an entry matches."""
    values = {
        "text": [f"word {number}" for number in range(8)],
        "draw": [*range(8)],
        "fixed": [b"%d" % n for n in range(8)],
    }
    table = pa.table({"text": values["text"] * 50, "draw": values["draw"] * 50, "fixed": values["fixed"] * 50})
    data = write_by_pyarrow(
        table, write_batch_size=10, data_page_size=20, write_page_index=False, write_statistics=False
    )
    page = data_pages(data, 0, column)[3]
    bad = flip_bytes(data, page.body, by=0xFF)  # the size of the Snappy block
    absent, there = {"text": ("word", "word 3"), "draw": (99, 3), "fixed": (b"x", b"3")}[column]
    with mock.patch.object(dictionaries, "_LARGEST", 0):  # nor is the row group pruned
        assert not len(numparq.read_parquet(bad, filters=col(column) == absent, verify_crc=False))
        with pytest.raises(numparq.CorruptPageError) as failure:
            numparq.read_parquet(bad, filters=col(column) == there, verify_crc=False)
    assert {"row_group": 0, "column": column, "page": 4}.items() <= failure.value.where.items()


@pytest.mark.parametrize("limit", [None, 100 << 20])
@pytest.mark.parametrize("column", ["text", "draw", "fixed"])
def test_second_read_takes_dictionaries_from_the_cache(monkeypatch, column, limit):
    """Those that an earlier read has decoded, except in limited memory."""
    data, decoded, decode = (
        write_by_pyarrow(TABLE, row_group_size=400, write_page_index=False),
        [],
        MatchSink._decode_dictionary,
    )

    def counted(*arguments):
        decoded.append(arguments)
        return decode(*arguments)

    monkeypatch.setattr(MatchSink, "_decode_dictionary", counted)
    monkeypatch.setattr(dictionaries, "_LARGEST", 0)  # no row group is pruned
    value = {"text": WORDS[7], "draw": 37, "fixed": b"017"}[column]
    everything = numparq.read_parquet(data)
    wanted = everything[(everything[column] == value).fillna(False)].reset_index(drop=True)
    with numparq.ParquetFile(data) as file:
        for calls in (3, 3 if limit is None else 6):
            found = file.read(filters=col(column) == value, memory_limit=limit)
            pd.testing.assert_frame_equal(found, wanted)
            assert len(decoded) == calls


def test_batches(data):
    predicate, expected = PREDICATES["equal"]
    everything = numparq.read_parquet(data, ["text", "gaps", "number"])
    wanted = everything[expected(everything).fillna(False)].reset_index(drop=True)
    with small_read_sizes(**SIZES["small"]), numparq.ParquetFile(data) as file:
        batches = list(file.iter_batches([*everything], filters=predicate, batch_rows=100))
    pd.testing.assert_frame_equal(pd.concat(batches, ignore_index=True), wanted)
