"""Point look-ups by prepared reads: rows, bytes and errors are those of other reads."""

from __future__ import annotations

import gc
import io
import weakref
from dataclasses import fields

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from numparq import ParquetError, col
from numparq.column import scratch
from numparq.format.physical_type import INT32, INT64
from numparq.io import local_source
from numparq.plan.row_ranges import RowRanges
from numparq.prune import lookup
from numparq.prune.column_indexes import ColumnIndexPruner
from numparq.prune.lookup import LookupPlanner
from numparq.scan.file_scan import FileScan
from numparq.scan.options import ScanOptions
from numparq.scan.point_lookup import PointLookup
from support.data.keyed_table import GROUP, PAGE, ROWS, keyed_file, keyed_frame
from support.files.forged_metadata import LIES, FileParts, forge
from support.io.recorded_reads import count_io


class LookupCounter:
    """Counts point look-ups that were answered (`done`), and those left to a scan though prepared (`left`)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = self.left = 0
        frame = PointLookup.to_frame

        def counted(this, file, key, verify_crc):
            result = None
            try:
                result = frame(this, file, key, verify_crc)
            finally:
                self.done += result is not None
                self.left += result is None
            return result

        monkeypatch.setattr(PointLookup, "to_frame", counted)


def read(data, columns, filters, **how):
    """Read with point look-ups; return the frame or error, the bytes and the requests."""
    return count_io(data, lambda file: file.read(columns, filters=filters, **how))


def read_by_scan(data, columns, filters, **how):
    """Read without point look-ups."""

    def frame(file):
        with numparq.errors.error_context(file=file.source.name):
            return FileScan(file, columns, ScanOptions(filters=filters, **how)).to_frame()

    return count_io(data, frame)


def prepare(data, columns, filters, **how) -> None:
    read(data, columns, filters, **how)


def check_same(ours, theirs) -> None:
    if isinstance(theirs[0], str):
        assert ours[0] == theirs[0]
        return
    pd.testing.assert_frame_equal(ours[0], theirs[0])
    assert ours[1:] == theirs[1:]


OPTIONS = {
    "snappy": {},
    "v2": {"compression": None, "data_page_version": "2.0"},
    "no checksums": {"write_page_checksum": False},
    "plain": {"column_encoding": {"key": "PLAIN", "small": "PLAIN"}},
    "one row group": {"row_group_size": ROWS},
}
COLUMNS = (None, ["text", "key", "some"], ["any"], ["key"], ["when", "float", "maybe", "flag"], ["small", "back"])


@pytest.mark.quick_cases(1)
@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
def test_rows_and_bytes_match_other_reads(monkeypatch, options, backend) -> None:
    data, counter = keyed_file(**options), LookupCounter(monkeypatch)
    for columns in COLUMNS:
        for name in ("key", "small", "back"):
            prepare(data, columns, col(name) == 0, dtype_backend=backend)
            counter.done = counter.left = 0
            for row in (0, 1, 99, 100, 1499, 1500, 3210, ROWS - 1):
                key = keyed_frame()[name].iloc[row]
                for filters in (col(name) == key, [(name, "=", int(key))]):
                    check_same(
                        read(data, columns, filters, dtype_backend=backend),
                        read_by_scan(data, columns, filters, dtype_backend=backend),
                    )
            assert (counter.done, counter.left) == (16, 0)


@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
def test_duplicate_columns(monkeypatch, backend) -> None:
    data, columns, counter = keyed_file(), ["text", "key", "some", "text", "key"], LookupCounter(monkeypatch)
    for name in ("key", "small"):
        for key in (-30, 30, 30, 4502, 3 * 1499):
            for filters in (col(name) == key, [(name, "=", key)]):
                check_same(
                    read(data, columns, filters, dtype_backend=backend),
                    read_by_scan(data, columns, filters, dtype_backend=backend),
                )
    assert counter.done > 10 > counter.left


def test_keys_with_several_rows_and_without_any(monkeypatch) -> None:
    data, counter, columns = keyed_file(), LookupCounter(monkeypatch), ["text", "near", "maybe", "some", "key"]
    prepare(data, columns, col("near") == 0)
    for near in (*range(210, 220), ROWS // 7):  # 214 is in two row groups
        check_same(read(data, columns, col("near") == near), read_by_scan(data, columns, col("near") == near))
    assert (counter.done, counter.left) == (11, 0)
    prepare(data, None, col("key") == 0)
    counter.done = 0
    for key in (1, 3 * 1499 + 1, 3 * ROWS - 4):
        ours = read(data, None, col("key") == key)
        check_same(ours, read_by_scan(data, None, col("key") == key))
        assert len(ours[0]) == 0
    assert counter.done == 2  # a key between row groups needs no look-up
    counter.left = 0
    for key in (-1, 3 * ROWS, 1 << 63, -(1 << 63), 1 << 70):
        assert len(read(data, None, col("key") == key)[0]) == 0


def test_first_read_prepares_nothing(monkeypatch) -> None:
    data, calls = keyed_file(key_value_metadata={"name": "first"}), []
    monkeypatch.setattr(PointLookup, "prepare", lambda *arguments: calls.append(1))
    prepare(data, None, col("key") == 3)
    assert not calls
    for _ in range(3):
        prepare(data, None, col("key") == 3)
    assert calls == [1]


OTHER_FILTERS = [
    col("key") > 5,
    col("key").isin([3]),
    ~(col("key") != 3),
    (col("key") == 3) & (col("near") == 0),
    col("key") == 3.0,
    col("flag") == True,  # noqa: E712
    [("key", "==", "3")],
    [("float", "==", 3)],
    [("when", "==", 3)],
    col("any") == 7,
    [("key", "in", [3])],
    [("key", "==", 3), ("near", "==", 0)],
    [[("key", "==", 3)], [("near", "==", 0)]],
    [[[("key", "==", 3)]]],
    [col("key") == 3],
    ["key", "==", 3],
    [("key", "==", True)],
    [("key", "==", np.timedelta64(3))],
    [("absent", "==", 3)],
    [("key", "==", np.array([3]))],
    [("key", np.array(["=="]), 3)],
    [("key", "==")],
    [("key", "==", 3, 4)],
    [],
    [[]],
]


@pytest.mark.parametrize("number", range(len(OTHER_FILTERS)))
def test_other_filters_are_left_to_the_scan(monkeypatch, number) -> None:
    data, counter, filters = keyed_file(), LookupCounter(monkeypatch), OTHER_FILTERS[number]

    def outcome(reader):
        try:
            return reader(data, ["key", "text"], filters)[0]
        except (TypeError, ValueError) as error:
            return str(error)

    for _ in range(3):
        ours, theirs = outcome(read), outcome(read_by_scan)
        assert ours == theirs if isinstance(theirs, str) else ours.equals(theirs)
    assert not counter.done


def test_notations_of_an_equality_filter(monkeypatch) -> None:
    data, counter = keyed_file(key_value_metadata={"of": "forms"}), LookupCounter(monkeypatch)
    prepare(data, ["text"], col("key") == 3)
    kinds = int, np.int8, np.int64, np.uint64
    triples = [("key", operator, kind(33)) for operator in ("=", "==") for kind in kinds]
    for triple in triples:
        for filters in (triple, [triple], [[triple]], col("key") == triple[2]):
            assert read(data, ["text"], filters)[0]["text"].tolist() == ["name 00011"]
    assert (counter.done, counter.left) == (4 * len(triples), 0)


STORED_AS_INTEGERS = {
    "price": ("i8", pa.decimal128(9, 2)),
    "total": ("i8", pa.decimal128(18, 2)),
    "day": ("i4", pa.date32()),
    "time": ("i4", pa.time32("ms")),
    "clock": ("i8", pa.time64("us")),
    "moment": ("i8", pa.timestamp("us")),
    "lapse": ("i8", pa.duration("us")),
    "tiny": ("i1", pa.int8()),
    "short": ("i2", pa.int16()),
    "byte": ("u1", pa.uint8()),
    "unsigned": ("u4", pa.uint32()),
    "large": ("u8", pa.uint64()),
}


@pytest.mark.parametrize("name", STORED_AS_INTEGERS)
def test_logical_types_stored_as_integers(monkeypatch, name) -> None:
    """An integer literal is compared with the logical value: 30 equals 30.00, not 0.30."""
    dtype, kind = STORED_AS_INTEGERS[name]
    numbers = (np.arange(ROWS) // 50).astype(dtype)  # unsigned types get their largest values, ascending
    column = pa.array(numbers + np.array([-120]).astype(dtype) if dtype[0] == "u" else numbers)
    column = column.cast(pa.decimal128(30, 2)).cast(kind) if pa.types.is_decimal(kind) else column.cast(kind)
    buffer, counter = io.BytesIO(), LookupCounter(monkeypatch)
    pq.write_table(
        pa.table({name: column, "text": keyed_frame()["text"]}),
        buffer,
        row_group_size=GROUP,
        data_page_size=400,
        write_batch_size=PAGE,
        write_page_index=True,
        use_dictionary=False,
        store_decimal_as_integer=True,
    )
    data = buffer.getvalue()
    with numparq.ParquetFile(data) as file:
        assert file.schema.leaf(0).physical in (INT32, INT64)
    for key in (30, 30, 59, np.array([-61]).astype(dtype)[0]):
        check_same(read(data, ["text"], col(name) == key), read_by_scan(data, ["text"], col(name) == key))
    assert not counter.done


@pytest.mark.parametrize(
    "how",
    [
        {"nrows": 0},
        {"nrows": 1},
        {"row_groups": []},
        {"row_groups": [1]},
        {"row_range": (0, 10)},
        {"row_range": (0, 11)},
        {"categories": ["text"]},
        {"include": ["row_number"]},
        {"memory_limit": 1 << 30},
        {"include": np.array(["row_number"])},
        {"include": pd.Index(["row_number"])},
        {"include": "row_number"},
        {"runtime_filters": numparq.RuntimeFilter("key")},
    ],
    ids=str,
)
def test_other_options_still_apply(monkeypatch, how) -> None:
    data, counter = keyed_file(), LookupCounter(monkeypatch)
    prepare(data, ["key", "text"], col("key") == 30)
    counter.done = 0
    frames = [numparq.read_parquet(data, ["key", "text"], filters=col("key") == 30, **how) for _ in range(3)]
    pd.testing.assert_frame_equal(frames[0], frames[2])
    assert not counter.done
    without = {"nrows": 0}, {"row_groups": []}, {"row_groups": [1]}, {"row_range": (0, 10)}  # row 10 is the match
    assert len(frames[0]) == (how not in without)


def test_every_scan_option_is_considered() -> None:
    """A new option must prevent look-ups, or be listed here as supported or as irrelevant to flat columns."""
    accessed = set()

    class AccessRecorder:
        def __getattr__(self, name: str):
            accessed.add(name)
            return getattr(ScanOptions(), name)

    assert ScanOptions.has_only_filters.fget(AccessRecorder())  # type: ignore[attr-defined]
    supported, irrelevant = (
        {"filters", "dtype_backend", "dates", "verify_crc", "threads", "on_error"},  # the last by `ParquetFile.read`
        {"variants", "files", "progress"},
    )
    assert {entry.name for entry in fields(ScanOptions)} == accessed | supported | irrelevant


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "zstd"},
        {"use_dictionary": True},
        {"bloom_filter_options": {"key": True}},
        {"write_page_index": False},
        {"write_statistics": False},
        {"max_rows_per_page": 1 << 20, "row_group_size": 1 << 20},
        {"column_encoding": {"text": "RLE_DICTIONARY"}},
        {"column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
        {"column_encoding": {"key": "BYTE_STREAM_SPLIT", "back": "BYTE_STREAM_SPLIT"}},
    ],
    ids=str,
)
def test_files_with_other_layouts(options) -> None:
    """Look-ups may fetch more bytes than a scan once per projection."""
    data, more = keyed_file(**options), 0
    for row in (5, 1600, 3210, 3211, 5999):
        for columns in (None, ["back", "text"]):
            filters = col("key") == 3 * row
            ours, theirs = read(data, columns, filters), read_by_scan(data, columns, filters)
            pd.testing.assert_frame_equal(ours[0], theirs[0])
            assert ours[1] >= theirs[1]
            more += ours[1] > theirs[1]
    assert more <= 2  # once for each projection
    if "text" not in str(options) and "BYTE" not in str(options):
        assert not more


def test_unsorted_keys(monkeypatch) -> None:
    frame = keyed_frame().sample(frac=1, random_state=4, ignore_index=True)
    frame["near"] = frame["near"] % 40
    data = keyed_file(frame)
    for name in ("key", "near"):
        for key in (0, 6, 30, 39):
            ours, theirs = read(data, None, col(name) == key), read_by_scan(data, None, col(name) == key)
            pd.testing.assert_frame_equal(ours[0], theirs[0])


def test_scattered_rows_within_a_page(monkeypatch) -> None:
    monkeypatch.setattr("numparq.to_pandas.frame.allocate_array", np.zeros)  # zeroed memory marks all rows as null
    keys = np.arange(ROWS) * 3
    keys[[50, 52, 60, 61, 99, 100]] = 150, 150, 180, 180, 297, 297
    keys[51] = 149
    nulls = pd.array(np.arange(ROWS) // 7, "Int64")
    nulls[[3, 6, 700, 706, 1405]] = pd.NA  # the placeholder of a null is no key
    frame = pd.DataFrame({"key": keys, "nulls": nulls, "text": keyed_frame()["text"]})
    for number, (name, key) in enumerate(
        [("key", 150), ("key", 180), ("key", 297), ("nulls", 0), ("nulls", 100), ("nulls", 200)]
    ):
        data = keyed_file(frame, key_value_metadata={"number": str(number)})
        prepare(data, None, col(name) == 21)
        for backend in ("numpy", "pyarrow"):
            for _ in range(2):
                ours, theirs = (
                    each(data, None, col(name) == key, dtype_backend=backend) for each in (read, read_by_scan)
                )
                check_same(ours[:1], theirs[:1])
            assert ours[0]["text"].tolist() == frame["text"][frame[name] == key].tolist()


def test_unordered_pages(monkeypatch) -> None:
    """The bounds of pages go up and down, and one page has only nulls."""
    numbers = np.arange(600)
    pages = [numbers[start : start + 100] for start in (300, 0, 500, 100)]
    keys = pd.array(np.concatenate([*pages, numbers[:100]]), "Int64")
    keys[400:] = pd.NA
    frame = pd.DataFrame({"key": keys, "text": [f"row {row}" for row in range(500)]})
    data, counter = keyed_file(frame, row_group_size=1000), LookupCounter(monkeypatch)
    for backend in ("pyarrow", "numpy_nullable"):
        prepare(data, None, col("key") == 0, dtype_backend=backend)
        for key in (0, 99, 100, 399, 555):
            check_same(
                read(data, None, col("key") == key, dtype_backend=backend),
                read_by_scan(data, None, col("key") == key, dtype_backend=backend),
            )
    assert counter.done == 10


def test_row_groups_with_a_single_key(monkeypatch) -> None:
    """Statistics prove that all rows match, so their pages are not looked up."""
    data, counter = keyed_file(keyed_frame().assign(near=np.arange(ROWS) // GROUP)), LookupCounter(monkeypatch)
    for near in (0, 0, 1, 3):
        check_same(read(data, ["text"], col("near") == near), read_by_scan(data, ["text"], col("near") == near))
    assert not counter.done


@pytest.mark.parametrize(("most", "done"), [(2 * PAGE - 1, 0), (2 * PAGE, 1)])
def test_row_limit_of_a_lookup(monkeypatch, most, done) -> None:
    monkeypatch.setattr(lookup, "MAX_ROWS", most)
    data, counter = keyed_file(key_value_metadata={"most": str(most)}), LookupCounter(monkeypatch)
    for _ in range(2):
        ours = read(data, None, col("near") == PAGE // 7)  # in two pages
        check_same(ours, read_by_scan(data, None, col("near") == PAGE // 7))
    assert counter.done == done


def test_nested_columns_are_left_to_the_scan(monkeypatch) -> None:
    frame = keyed_frame()[["key", "text"]].assign(pair=[{"a": row, "b": str(row)} for row in range(ROWS)])
    data, counter = keyed_file(frame), LookupCounter(monkeypatch)
    for columns in (None, ["pair", "key"], ["pair.a"], ["text"]):
        for name in ("key", "pair.a"):
            for _ in range(2):
                check_same(read(data, columns, col(name) == 33), read_by_scan(data, columns, col(name) == 33))
    assert counter.done == 1  # for the flat columns only


def test_categorical_and_null_columns() -> None:
    frame = keyed_frame()[["key", "text"]].assign(kind=pd.Categorical(np.arange(ROWS) % 7 // 2), nothing=None)
    frame["word"] = pd.Categorical([f"word {row % 5}" for row in range(ROWS)])
    data = keyed_file(frame, column_encoding=dict.fromkeys(["kind", "word"], "PLAIN"))
    for column in ("kind", "word", "nothing"):
        for key in (33, 33, 34, 36):
            for backend in ("numpy", "pyarrow"):
                check_same(
                    read(data, [column, "key"], col("key") == key, dtype_backend=backend),
                    read_by_scan(data, [column, "key"], col("key") == key, dtype_backend=backend),
                )


@pytest.mark.parametrize("column", ["key", "any", "text"])
def test_columns_without_an_offset_index(monkeypatch, column) -> None:
    parts, counter = FileParts(keyed_file(row_group_size=ROWS)), LookupCounter(monkeypatch)
    parts.indexes[0, [*keyed_frame()].index(column)]["OffsetIndex"] = None
    data, columns = parts.data(), ["any", "text"]
    for _ in range(3):
        check_same(read(data, columns, col("key") == 6150), read_by_scan(data, columns, col("key") == 6150))
    assert not counter.done


@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
def test_nulls_without_null_counts(monkeypatch, backend) -> None:
    """The statistics have no null counts. Some nulls are in the first row group, some in the second."""
    frame, counter = keyed_frame()[["near", "some", "maybe", "float"]], LookupCounter(monkeypatch)
    for first, column in ((1499, "some"), (1500, "some"), (1499, "maybe"), (1500, "maybe"), (1500, "float")):
        frame[column] = [None if row == first else value for row, value in enumerate(frame[column])]
    frame["some"] = frame["some"].astype("Int64")
    data = forge(keyed_file(frame), ("no null counts",))
    for near in (214, 214, 213, 215, 0):
        ours, theirs = (each(data, None, col("near") == near, dtype_backend=backend) for each in (read, read_by_scan))
        check_same(ours[:1], theirs[:1])
    assert counter.done


def test_dtypes_are_those_of_the_whole_file(monkeypatch) -> None:
    """The nulls that decide the dtypes are not among the rows."""
    numbers, buffer, counter = np.arange(ROWS), io.BytesIO(), LookupCounter(monkeypatch)
    kinds = pa.int16(), pa.int32(), pa.int64(), pa.bool_(), pa.float64(), pa.date32(), pa.string()
    columns = {str(kind): pa.array((numbers % 2).astype("i4"), mask=numbers == 7).cast(kind) for kind in kinds}
    pq.write_table(
        pa.table({"key": numbers, **columns}),
        buffer,
        write_batch_size=PAGE,
        data_page_size=400,
        write_page_index=True,
        use_dictionary=False,
    )
    for backend in ("numpy", "numpy_nullable", "pyarrow"):
        for key in (3000, 3000, 7, 3001):
            ours, theirs = (
                each(buffer.getvalue(), None, col("key") == key, dtype_backend=backend) for each in (read, read_by_scan)
            )
            check_same(ours, theirs)
    assert counter.done == 9


def test_row_groups_with_different_codecs(tmp_path, monkeypatch) -> None:
    path, counter = tmp_path / "file.parquet", LookupCounter(monkeypatch)
    for compression in ("snappy", None):
        numparq.to_parquet(
            keyed_frame().assign(key=lambda frame, more=compression is None: frame["key"] + more * 100_000),
            path,
            append=compression is None,
            compression=compression,
            use_dictionary=False,
            max_rows_per_page=PAGE,
        )
    for key in (30, 30, 100_030, 33, 100_033):
        check_same(
            read(path, ["text", "any"], col("key") == key), read_by_scan(path, ["text", "any"], col("key") == key)
        )
    assert (counter.done, counter.left) == (4, 0)


def test_external_column_chunks(tmp_path, monkeypatch) -> None:
    parts, counter = FileParts(keyed_file()), LookupCounter(monkeypatch)
    (tmp_path / "text.parquet").write_bytes(keyed_file())
    for _, place, chunk in parts.chunks():
        if place == [*keyed_frame()].index("text"):
            chunk.file_path = "text.parquet"
    (tmp_path / "file.parquet").write_bytes(parts.data())
    for external_files in (True, False, True):
        for row in (10, 11, 12):
            how = {"filters": col("key") == 3 * row, "external_files": external_files}
            got = numparq.read_parquet(tmp_path / "file.parquet", ["any"], **how)
            assert got["any"].tolist() == [keyed_frame()["any"][row]]
            if external_files:
                got = numparq.read_parquet(tmp_path / "file.parquet", ["text"], **how)
                assert got["text"].tolist() == [f"name {row:05}"]
                continue
            with pytest.raises(ParquetError, match=r"another file, 'text\.parquet'"):
                numparq.read_parquet(tmp_path / "file.parquet", ["text"], **how)
    assert counter.done == 8


def test_coalesced_and_remote_reads_use_the_scan(monkeypatch) -> None:
    """Explicit coalescing and remote files fetch the ranges of all columns together."""
    data, counter = keyed_file(), LookupCounter(monkeypatch)
    fsspec.filesystem("memory").pipe("/key-look-ups.parquet", data)
    for how in ({"coalescing": numparq.Coalescing(0, 1 << 20)}, {"filesystem": fsspec.filesystem("memory")}):
        with numparq.ParquetFile("/key-look-ups.parquet" if "filesystem" in how else data, **how) as file:
            for row in (10, 11, 12):
                assert file.read(["text"], filters=col("key") == 3 * row)["text"].tolist() == [f"name {row:05}"]
    assert not counter.done


def test_gaps_between_matching_pages_are_not_read() -> None:
    starts = (0, 500, 0, 700, 900, 700)
    frame = pd.DataFrame({"key": np.concatenate([np.arange(start, start + PAGE) for start in starts])})
    for rows in (PAGE, 2 * PAGE, 3 * PAGE, 6 * PAGE):
        data = keyed_file(frame, row_group_size=rows)
        for key in (550, 550, 50, 551, 50, 950, 750):
            check_same(read(data, ["key"], col("key") == key), read_by_scan(data, ["key"], col("key") == key))


def test_large_keys_beside_nulls() -> None:
    """Such keys are not exact in float64, the dtype of integers with nulls."""
    numbers, buffer = np.arange(ROWS), io.BytesIO()
    key, small = (pa.array(values, mask=numbers % 400 == 7) for values in (numbers + (1 << 62), numbers))
    pq.write_table(
        pa.table({"key": key, "small": small}),
        buffer,
        write_batch_size=PAGE,
        data_page_size=400,
        write_page_index=True,
        use_dictionary=False,
    )
    data = buffer.getvalue()
    for columns in (None, ["key"], ["small"]):
        for name, key in (("key", (1 << 62) + 2051), ("small", 2051)) * 3:
            ours, theirs = read(data, columns, col(name) == key), read_by_scan(data, columns, col(name) == key)
            check_same(ours[:1], theirs[:1])
    assert read(data, ["key"], col("key") == (1 << 62) + 2051)[0]["key"].tolist() == [(1 << 62) + 2051]


@pytest.mark.parametrize(
    "columns",
    [
        lambda: iter(["text"]),
        lambda: ("text", "key"),
        lambda: {"text": 1},
        lambda: "text",
        lambda: [("text",)],
        lambda: [["text"]],
        lambda: [7],
        lambda: [None],
        lambda: ["absent"],
        lambda: [np.str_("text")],
        lambda: pd.Index(["text"]),
        lambda: np.array(["key"]),
        list,
    ],
)
def test_forms_of_the_columns_argument(columns) -> None:
    def outcome(reader):
        try:
            return reader(data, columns(), col("key") == 33)[0]
        except Exception as error:
            return repr(error)

    data = keyed_file()
    for _ in range(3):
        ours, theirs = outcome(read), outcome(read_by_scan)
        assert ours == theirs if isinstance(theirs, str) else ours.equals(theirs)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("lie", LIES)
def test_wrong_metadata_has_the_effect_of_other_reads(lie) -> None:
    for rows in (100, 101):
        data = forge(keyed_file(row_group_size=ROWS // 2, max_rows_per_page=rows), (lie,))
        for name, key in (("key", 3 * 3210), ("near", 230), ("back", 17)):
            prepare(data, ["key", "near", "any"], col(name) == 1)
            ours, theirs = (
                read(data, ["key", "near", "any"], col(name) == key),
                read_by_scan(data, ["key", "near", "any"], col(name) == key),
            )
            check_same(ours[:1], theirs[:1])


@pytest.mark.slow
def test_damage_raises_the_errors_of_other_reads() -> None:
    """Damages each byte of a page of each column, and of the indexes, between reads of the sound file."""
    data, columns, filters = (
        keyed_file(compression=None, row_group_size=ROWS),
        ["key", "float", "text"],
        col("key") == 6150,
    )
    with numparq.ParquetFile(data) as file:
        plan = file.plan(columns, filters=filters)[0]
        pages = [
            int(chunk.offsets[chunk.pages_with_rows(RowRanges.from_range(2050, 2051))[0]]) for chunk in plan.chunks[:3]
        ]
        metadata = file.metadata.row_groups[0].columns[0]
    prepare(data, columns, filters)
    num_errors = 0
    places = [(page, 40) for page in pages] + [(metadata.column_index_offset, 30), (metadata.offset_index_offset, 30)]
    for start, length in places:
        for place in range(start, start + length):
            damaged = data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]
            theirs = read_by_scan(damaged, columns, filters)
            check_same(read(damaged, columns, filters)[:1], theirs[:1])
            num_errors += isinstance(theirs[0], str)
            for _ in range(2):  # a look-up after damage works again
                check_same(read(data, columns, filters)[:1], read_by_scan(data, columns, filters)[:1])
    assert num_errors > 20


def damaged_file(created_by: str) -> bytes:
    """Build a file in which the value of row 10 does not match the checksum of its page."""
    parts = FileParts(keyed_file(compression=None, column_encoding={"any": "PLAIN"}))
    parts.footer.created_by = created_by
    with numparq.ParquetFile(parts.data()) as file:
        place = int(file.plan(["any"], filters=col("key") == 30)[0].chunks[0].offsets[0])
    numbers = keyed_frame()["any"].to_numpy()[:PAGE]
    place = parts.body.index(numbers.tobytes(), place)
    parts.body[place + 80 : place + 88] = (numbers[10] + 1000).tobytes()
    return parts.data()


@pytest.mark.parametrize(
    ("created_by", "done"),
    [
        ("numparq version 9.9.9", (2, 0)),
        ("parquet-mr version 1.13.0 (build 1)", (2, 0)),
        ("parquet.jl version 1.0.0", (2, 2)),
        ("impala version 4.0.0", (0, 0)),
    ],
)
def test_checksums(monkeypatch, created_by, done) -> None:
    """Includes a writer without valid checksums, and one that packs levels in its own order."""
    data, counter = damaged_file(created_by), LookupCounter(monkeypatch)
    prepare(data, ["any"], col("key") == 600)  # in an undamaged page
    for verify_crc, times in zip((False, True), done, strict=True):
        counter.done = 0
        for _ in range(2):
            ours, theirs = (
                each(data, ["any"], col("key") == 30, verify_crc=verify_crc) for each in (read, read_by_scan)
            )
            check_same(ours[:1], theirs[:1])
            assert isinstance(ours[0], str) == (verify_crc and "jl" not in created_by)
        assert counter.done == times


def test_dictionary_encoded_strings_use_the_scan(monkeypatch) -> None:
    """The dictionary is noticed before anything is read."""
    frame = keyed_frame().assign(text=[f"word {row % 5}" for row in range(ROWS)])
    data, counter = keyed_file(frame, column_encoding={"text": "RLE_DICTIONARY"}), LookupCounter(monkeypatch)
    for _ in range(3):
        check_same(read(data, ["text"], col("key") == 33), read_by_scan(data, ["text"], col("key") == 33))
    assert not counter.done


def test_buffers_are_reused(monkeypatch) -> None:
    data, counter, allocations = keyed_file(key_value_metadata={"of": "buffers"}), LookupCounter(monkeypatch), []
    for _ in range(2):
        prepare(data, ["text"], col("key") == 33)
    monkeypatch.setattr(scratch, "Scratch", lambda: allocations.append(1))
    for _ in range(3):
        prepare(data, ["text"], col("key") == 33)
    assert counter.done == 4
    assert not allocations


def test_files_with_equal_footers(monkeypatch) -> None:
    """Indexes and pages of one file are never used for another."""
    counter = LookupCounter(monkeypatch)
    first = keyed_file(compression=None, column_encoding={"any": "PLAIN"}, write_page_checksum=False)
    with numparq.ParquetFile(first) as file:
        chunk = file.plan(["any"], filters=col("key") == 30)[0].chunks[0]
        place = int(chunk.offsets[0])
    values = keyed_frame()["any"].to_numpy()[:PAGE].tobytes()
    at = first.index(values, place)
    second = first[:at] + (keyed_frame()["any"].to_numpy()[:PAGE] + 1000).tobytes() + first[at + len(values) :]
    for _ in range(3):
        for data, more in ((first, 0), (second, 1000)):
            got = numparq.read_parquet(data, ["any"], filters=col("key") == 30)
            assert got["any"].tolist() == [keyed_frame()["any"][10] + more]
    assert counter.done


def test_open_file_reads_indexes_once(monkeypatch) -> None:
    data, counter = keyed_file(), LookupCounter(monkeypatch)
    prepare(data, ["text"], col("key") == 30)
    with numparq.ParquetFile(data) as file:

        def count(key: int) -> int:
            before = file.source.num_bytes
            assert len(file.read(["text"], filters=col("key") == key)) == 1
            return file.source.num_bytes - before

        first, again, other = count(30), count(33), count(3 * 2000)
        assert other > again < first
        assert count(3 * 2000) < other
    assert (counter.done, counter.left) == (4, 0)


@pytest.mark.parametrize("is_new", [True, False])
def test_only_indexes_of_settled_files_stay_cached_after_close(tmp_path, monkeypatch, is_new) -> None:
    if not is_new:
        monkeypatch.setattr(local_source, "SETTLED_NS", 0)
    path, alive = tmp_path / "file.parquet", weakref.WeakSet()
    path.write_bytes(keyed_file(key_value_metadata={"new": str(is_new)}))
    monkeypatch.setattr(
        LookupPlanner, "_pruner", lambda *arguments, build=LookupPlanner._pruner: record(alive, build(*arguments))
    )
    for row in (10, 11, 2000, 3500):
        with numparq.ParquetFile(path) as file:
            alive.update((file, file.source))
            assert len(file.read(["text"], filters=col("key") == 3 * row)) == 1
        del file
    gc.collect()
    assert [type(each) for each in alive] == [ColumnIndexPruner] * (0 if is_new else 3)


def record(alive: weakref.WeakSet, pruner: ColumnIndexPruner) -> ColumnIndexPruner:
    alive.add(pruner)
    return pruner


def test_index_columns_and_labels(monkeypatch) -> None:
    counter = LookupCounter(monkeypatch)
    for frame in (
        keyed_frame().set_index("near"),
        keyed_frame().set_index(["near", "key"]),
        keyed_frame().rename(columns={"any": "ä"}),
    ):
        data = keyed_file(frame, index=None)
        prepare(data, None, col("key") == 33)
        for key in (33, 34):
            check_same(read(data, None, col("key") == key), read_by_scan(data, None, col("key") == key))
    assert counter.done == 6


@given(st.data())
def test_random_frames(data) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    rows = data.draw(st.integers(1, 400))
    dtype = data.draw(st.sampled_from(["i8", "i4", "Int64", "Int32", "i2", "u4", "u8"]))
    spread = data.draw(st.sampled_from([3, 40, 10_000]))
    keys = rng.integers(0, spread, rows) - (spread // 2 if dtype[0].lower() == "i" else 0)
    if data.draw(st.booleans()):
        keys.sort()
    column = pd.array(keys.astype(dtype.lower().replace("int", "i").replace("i64", "i8").replace("i32", "i4")))
    if dtype[0] == "I":
        column = pd.array(np.where(rng.random(rows) < 0.2, None, keys), dtype)
    frame = pd.DataFrame(
        {
            "key": column,
            "number": rng.normal(size=rows),
            "text": [f"t{n}" * (n % 4) for n in range(rows)],
            "null": [None if n % 3 else n / 2 for n in range(rows)],
        }
    )
    buffer = io.BytesIO()
    if data.draw(st.booleans()):
        frame.to_parquet(
            buffer,
            engine="pyarrow",
            row_group_size=100,
            write_page_index=True,
            data_page_size=200,
            use_dictionary=False,
        )
    else:
        numparq.to_parquet(
            frame,
            buffer,
            row_group_size=data.draw(st.sampled_from([50, 200, 1000])),
            max_rows_per_page=data.draw(st.sampled_from([7, 30, 1000])),
            use_dictionary=False,
            compression=data.draw(st.sampled_from(["snappy", None, "zstd"])),
        )
    data_of_file, columns = buffer.getvalue(), data.draw(st.sampled_from([None, ["text"], ["key", "null"]]))
    backend = data.draw(st.sampled_from(["numpy", "numpy_nullable", "pyarrow"]))
    for key in [*keys[:: max(rows // 5, 1)].tolist(), spread + 1, 1]:
        for _ in range(2):
            ours = read(data_of_file, columns, col("key") == key, dtype_backend=backend)
        theirs = read_by_scan(data_of_file, columns, col("key") == key, dtype_backend=backend)
        check_same(ours[:1], theirs[:1])


def test_column_limit_of_a_lookup(monkeypatch) -> None:
    frame = pd.DataFrame({f"c{number}": np.arange(ROWS) for number in range(lookup.MAX_CHUNKS + 1)})
    data, counter = keyed_file(frame), LookupCounter(monkeypatch)
    for columns, done in ((None, 0), ([*frame][1:], 0), ([*frame][:-1], 1)):
        prepare(data, columns, col("c0") == 3)
        assert len(read(data, columns, col("c0") == 3)[0]) == 1
        assert counter.done == done
