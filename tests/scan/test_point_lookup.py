"""Look-ups of keys, which are prepared once: the rows, the bytes and the errors are those of any other read."""

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
from hypothesis import given, settings
from hypothesis import strategies as st

import numparq
from numparq import ParquetError, col
from numparq.column import scratch
from numparq.format.physical_type import INT32, INT64
from numparq.plan.row_ranges import RowRanges
from numparq.prune import lookup
from numparq.prune.column_indexes import ColumnIndexPruner
from numparq.prune.lookup import LookupPlanner
from numparq.scan.error_policy import RaiseOnDamage
from numparq.scan.file_scan import FileScan
from numparq.scan.options import ScanOptions
from numparq.scan.point_lookup import PointLookup
from support.data.keyed_table import GROUP, PAGE, ROWS, keyed_file, keyed_frame
from support.files.forged_metadata import LIES, FileParts, forge
from support.io.recorded_reads import count_io


class LookupCounter:
    """Counts the look-ups that were answered, and those that were left to others though they are prepared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = self.left = 0
        frame = PointLookup.to_frame

        def watched(this, file, key, verify_crc):
            found = None
            try:
                found = frame(this, file, key, verify_crc)
            finally:
                self.done += found is not None
                self.left += found is None
            return found

        monkeypatch.setattr(PointLookup, "to_frame", watched)


def read(data, columns, filters, **how):
    """Read with all ways there are; gives the frame or error, and bytes and requests."""
    return count_io(data, lambda file: file.read(columns, filters=filters, **how))


def read_else(data, columns, filters, **how):
    """Read without look-ups of keys."""

    def frame(file):
        with numparq.errors.error_context(file=file.source.name):
            return FileScan(file, columns, ScanOptions(filters=filters, **how)).to_frame(RaiseOnDamage())

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


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
def test_rows_and_bytes_are_those_of_other_reads(monkeypatch, options, backend) -> None:
    data, seen = keyed_file(**options), LookupCounter(monkeypatch)
    for columns in COLUMNS:
        for name in ("key", "small", "back"):
            prepare(data, columns, col(name) == 0, dtype_backend=backend)
            seen.done = seen.left = 0
            for row in (0, 1, 99, 100, 1499, 1500, 3210, ROWS - 1):
                key = keyed_frame()[name].iloc[row]
                for filters in (col(name) == key, [(name, "=", int(key))]):
                    check_same(
                        read(data, columns, filters, dtype_backend=backend),
                        read_else(data, columns, filters, dtype_backend=backend),
                    )
            assert (seen.done, seen.left) == (16, 0)


@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
def test_columns_that_are_wanted_twice(monkeypatch, backend) -> None:
    data, columns, seen = keyed_file(), ["text", "key", "some", "text", "key"], LookupCounter(monkeypatch)
    for name in ("key", "small"):
        for key in (-30, 30, 30, 4502, 3 * 1499):
            for filters in (col(name) == key, [(name, "=", key)]):
                check_same(
                    read(data, columns, filters, dtype_backend=backend),
                    read_else(data, columns, filters, dtype_backend=backend),
                )
    assert seen.done > 10 > seen.left


def test_several_rows_with_a_key_and_none(monkeypatch) -> None:
    data, seen, columns = keyed_file(), LookupCounter(monkeypatch), ["text", "near", "maybe", "some", "key"]
    prepare(data, columns, col("near") == 0)
    for near in (*range(210, 220), ROWS // 7):  # 214 is in two row groups
        check_same(read(data, columns, col("near") == near), read_else(data, columns, col("near") == near))
    assert (seen.done, seen.left) == (11, 0)
    prepare(data, None, col("key") == 0)
    seen.done = 0
    for key in (1, 3 * 1499 + 1, 3 * ROWS - 4):
        ours = read(data, None, col("key") == key)
        check_same(ours, read_else(data, None, col("key") == key))
        assert len(ours[0]) == 0
    assert seen.done == 2  # between row groups there is nothing to look up
    seen.left = 0
    for key in (-1, 3 * ROWS, 1 << 63, -(1 << 63), 1 << 70):
        assert len(read(data, None, col("key") == key)[0]) == 0


def test_nothing_is_prepared_for_the_first_one(monkeypatch) -> None:
    data, made = keyed_file(key_value_metadata={"name": "first"}), []
    monkeypatch.setattr(PointLookup, "prepare", lambda *arguments: made.append(1))
    prepare(data, None, col("key") == 3)
    assert not made
    for _ in range(3):
        prepare(data, None, col("key") == 3)
    assert made == [1]


OTHERS = [
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


@pytest.mark.parametrize("number", range(len(OTHERS)))
def test_what_is_no_look_up_is_left_to_others(monkeypatch, number) -> None:
    data, seen, filters = keyed_file(), LookupCounter(monkeypatch), OTHERS[number]

    def outcome(read_so):
        try:
            return read_so(data, ["key", "text"], filters)[0]
        except (TypeError, ValueError) as error:
            return str(error)

    for _ in range(3):
        ours, theirs = outcome(read), outcome(read_else)
        assert ours == theirs if isinstance(theirs, str) else ours.equals(theirs)
    assert not seen.done


def test_forms_of_a_filter(monkeypatch) -> None:
    data, seen = keyed_file(key_value_metadata={"of": "forms"}), LookupCounter(monkeypatch)
    prepare(data, ["text"], col("key") == 3)
    kinds = int, np.int8, np.int64, np.uint64
    triples = [("key", operator, kind(33)) for operator in ("=", "==") for kind in kinds]
    for triple in triples:
        for filters in (triple, [triple], [[triple]], col("key") == triple[2]):
            assert read(data, ["text"], filters)[0]["text"].tolist() == ["name 00011"]
    assert (seen.done, seen.left) == (4 * len(triples), 0)


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
def test_what_is_stored_as_an_integer_and_is_another_thing(monkeypatch, name) -> None:
    """An integer that is asked for is compared with what values mean, where it can be: 30 with 30.00, not with 0.30."""
    dtype, kind = STORED_AS_INTEGERS[name]
    numbers = (np.arange(ROWS) // 50).astype(dtype)  # of unsigned ones the largest there are, in their order
    column = pa.array(numbers + np.array([-120]).astype(dtype) if dtype[0] == "u" else numbers)
    column = column.cast(pa.decimal128(30, 2)).cast(kind) if pa.types.is_decimal(kind) else column.cast(kind)
    buffer, seen = io.BytesIO(), LookupCounter(monkeypatch)
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
        check_same(read(data, ["text"], col(name) == key), read_else(data, ["text"], col(name) == key))
    assert not seen.done


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
def test_other_arguments_are_not_lost(monkeypatch, how) -> None:
    data, seen = keyed_file(), LookupCounter(monkeypatch)
    prepare(data, ["key", "text"], col("key") == 30)
    seen.done = 0
    found = [numparq.read_parquet(data, ["key", "text"], filters=col("key") == 30, **how) for _ in range(3)]
    pd.testing.assert_frame_equal(found[0], found[2])
    assert not seen.done
    without = {"nrows": 0}, {"row_groups": []}, {"row_groups": [1]}, {"row_range": (0, 10)}  # that row is number 10
    assert len(found[0]) == (how not in without)


def test_every_choice_is_looked_at() -> None:
    """A new one stands in the way of look-ups, or is added here: as one that they heed, or that cannot concern them."""
    seen = set()

    class Seen:
        def __getattr__(self, name: str):
            seen.add(name)
            return getattr(ScanOptions(), name)

    assert ScanOptions.has_only_filters.fget(Seen())  # type: ignore[attr-defined]
    heeded, of_nested_columns = {"filters", "dtype_backend", "verify_crc", "threads"}, {"variants", "files"}
    assert {entry.name for entry in fields(ScanOptions)} == seen | heeded | of_nested_columns


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
def test_other_files(options) -> None:
    """Where pages would be fetched twice, that happens once at most."""
    data, more = keyed_file(**options), 0
    for row in (5, 1600, 3210, 3211, 5999):
        for columns in (None, ["back", "text"]):
            filters = col("key") == 3 * row
            ours, theirs = read(data, columns, filters), read_else(data, columns, filters)
            pd.testing.assert_frame_equal(ours[0], theirs[0])
            assert ours[1] >= theirs[1]
            more += ours[1] > theirs[1]
    assert more <= 2  # once for either choice of columns
    if "text" not in str(options) and "BYTE" not in str(options):
        assert not more


def test_keys_that_are_not_together(monkeypatch) -> None:
    frame = keyed_frame().sample(frac=1, random_state=4, ignore_index=True)
    frame["near"] = frame["near"] % 40
    data = keyed_file(frame)
    for name in ("key", "near"):
        for key in (0, 6, 30, 39):
            ours, theirs = read(data, None, col(name) == key), read_else(data, None, col(name) == key)
            pd.testing.assert_frame_equal(ours[0], theirs[0])


def test_rows_that_are_not_together_in_a_page(monkeypatch) -> None:
    monkeypatch.setattr(
        "numparq.to_pandas.frame.allocate_array", np.zeros
    )  # fresh memory that says of all rows that they are null
    keys = np.arange(ROWS) * 3
    keys[[50, 52, 60, 61, 99, 100]] = 150, 150, 180, 180, 297, 297
    keys[51] = 149
    nulls = pd.array(np.arange(ROWS) // 7, "Int64")
    nulls[[3, 6, 700, 706, 1405]] = pd.NA  # what stands for a null is no key
    frame = pd.DataFrame({"key": keys, "nulls": nulls, "text": keyed_frame()["text"]})
    for number, (name, key) in enumerate(
        [("key", 150), ("key", 180), ("key", 297), ("nulls", 0), ("nulls", 100), ("nulls", 200)]
    ):
        data = keyed_file(frame, key_value_metadata={"number": str(number)})
        prepare(data, None, col(name) == 21)
        for backend in ("numpy", "pyarrow"):
            for _ in range(2):
                ours, theirs = (each(data, None, col(name) == key, dtype_backend=backend) for each in (read, read_else))
                check_same(ours[:1], theirs[:1])
            assert ours[0]["text"].tolist() == frame["text"][frame[name] == key].tolist()


def test_runs_of_pages_in_no_order(monkeypatch) -> None:
    """Pages whose bounds go up and down, one of them with nothing but nulls."""
    numbers = np.arange(600)
    pages = [numbers[start : start + 100] for start in (300, 0, 500, 100)]
    keys = pd.array(np.concatenate([*pages, numbers[:100]]), "Int64")
    keys[400:] = pd.NA
    frame = pd.DataFrame({"key": keys, "text": [f"row {row}" for row in range(500)]})
    data, seen = keyed_file(frame, row_group_size=1000), LookupCounter(monkeypatch)
    for backend in ("pyarrow", "numpy_nullable"):
        prepare(data, None, col("key") == 0, dtype_backend=backend)
        for key in (0, 99, 100, 399, 555):
            check_same(
                read(data, None, col("key") == key, dtype_backend=backend),
                read_else(data, None, col("key") == key, dtype_backend=backend),
            )
    assert seen.done == 10


def test_row_groups_of_one_key(monkeypatch) -> None:
    """Where statistics prove that all rows have it, what they say is not looked at."""
    data, seen = keyed_file(keyed_frame().assign(near=np.arange(ROWS) // GROUP)), LookupCounter(monkeypatch)
    for near in (0, 0, 1, 3):
        check_same(read(data, ["text"], col("near") == near), read_else(data, ["text"], col("near") == near))
    assert not seen.done


@pytest.mark.parametrize(("most", "done"), [(2 * PAGE - 1, 0), (2 * PAGE, 1)])
def test_pages_of_many_rows(monkeypatch, most, done) -> None:
    monkeypatch.setattr(lookup, "MAX_ROWS", most)
    data, seen = keyed_file(key_value_metadata={"most": str(most)}), LookupCounter(monkeypatch)
    for _ in range(2):
        ours = read(data, None, col("near") == PAGE // 7)  # in two pages
        check_same(ours, read_else(data, None, col("near") == PAGE // 7))
    assert seen.done == done


def test_nested_columns_are_left_to_others(monkeypatch) -> None:
    frame = keyed_frame()[["key", "text"]].assign(pair=[{"a": row, "b": str(row)} for row in range(ROWS)])
    data, seen = keyed_file(frame), LookupCounter(monkeypatch)
    for columns in (None, ["pair", "key"], ["pair.a"], ["text"]):
        for name in ("key", "pair.a"):
            for _ in range(2):
                check_same(read(data, columns, col(name) == 33), read_else(data, columns, col(name) == 33))
    assert seen.done == 1  # of the flat columns alone


def test_columns_that_are_neither_values_nor_strings() -> None:
    frame = keyed_frame()[["key", "text"]].assign(kind=pd.Categorical(np.arange(ROWS) % 7 // 2), nothing=None)
    frame["word"] = pd.Categorical([f"word {row % 5}" for row in range(ROWS)])
    data = keyed_file(frame, column_encoding=dict.fromkeys(["kind", "word"], "PLAIN"))
    for column in ("kind", "word", "nothing"):
        for key in (33, 33, 34, 36):
            for backend in ("numpy", "pyarrow"):
                check_same(
                    read(data, [column, "key"], col("key") == key, dtype_backend=backend),
                    read_else(data, [column, "key"], col("key") == key, dtype_backend=backend),
                )


@pytest.mark.parametrize("column", ["key", "any", "text"])
def test_columns_without_an_offset_index(monkeypatch, column) -> None:
    parts, seen = FileParts(keyed_file(row_group_size=ROWS)), LookupCounter(monkeypatch)
    parts.indexes[0, [*keyed_frame()].index(column)]["OffsetIndex"] = None
    data, columns = parts.data(), ["any", "text"]
    for _ in range(3):
        check_same(read(data, columns, col("key") == 6150), read_else(data, columns, col("key") == 6150))
    assert not seen.done


@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
def test_nulls_that_nothing_tells_of(monkeypatch, backend) -> None:
    """Chunks whose statistics have no counts of nulls: some rows have nulls, in the first row group or the second."""
    frame, seen = keyed_frame()[["near", "some", "maybe", "float"]], LookupCounter(monkeypatch)
    for first, column in ((1499, "some"), (1500, "some"), (1499, "maybe"), (1500, "maybe"), (1500, "float")):
        frame[column] = [None if row == first else value for row, value in enumerate(frame[column])]
    frame["some"] = frame["some"].astype("Int64")
    data = forge(keyed_file(frame), ("no null counts",))
    for near in (214, 214, 213, 215, 0):
        ours, theirs = (each(data, None, col("near") == near, dtype_backend=backend) for each in (read, read_else))
        check_same(ours[:1], theirs[:1])
    assert seen.done


def test_dtypes_are_those_of_the_whole_file(monkeypatch) -> None:
    """Though the nulls that they are chosen for are not among the rows."""
    numbers, buffer, seen = np.arange(ROWS), io.BytesIO(), LookupCounter(monkeypatch)
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
                each(buffer.getvalue(), None, col("key") == key, dtype_backend=backend) for each in (read, read_else)
            )
            check_same(ours, theirs)
    assert seen.done == 9


def test_row_groups_of_other_codecs(tmp_path, monkeypatch) -> None:
    path, seen = tmp_path / "file.parquet", LookupCounter(monkeypatch)
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
        check_same(read(path, ["text", "any"], col("key") == key), read_else(path, ["text", "any"], col("key") == key))
    assert (seen.done, seen.left) == (4, 0)


def test_columns_in_another_file(tmp_path, monkeypatch) -> None:
    parts, seen = FileParts(keyed_file()), LookupCounter(monkeypatch)
    (tmp_path / "text.parquet").write_bytes(keyed_file())
    for _, place, chunk in parts.chunks():
        if place == [*keyed_frame()].index("text"):
            chunk.file_path = "text.parquet"
    (tmp_path / "file.parquet").write_bytes(parts.data())
    for external_files in (True, False, True):
        for row in (10, 11, 12):
            how = {"filters": col("key") == 3 * row, "external_files": external_files}
            found = numparq.read_parquet(tmp_path / "file.parquet", ["any"], **how)
            assert found["any"].tolist() == [keyed_frame()["any"][row]]
            if external_files:
                found = numparq.read_parquet(tmp_path / "file.parquet", ["text"], **how)
                assert found["text"].tolist() == [f"name {row:05}"]
                continue
            with pytest.raises(ParquetError, match=r"another file, 'text\.parquet'"):
                numparq.read_parquet(tmp_path / "file.parquet", ["text"], **how)
    assert seen.done == 8


def test_more_is_asked_of_a_file_at_once_than_column_by_column(monkeypatch) -> None:
    """Where the user says what is fetched together, and where the file is remote."""
    data, seen = keyed_file(), LookupCounter(monkeypatch)
    fsspec.filesystem("memory").pipe("/key-look-ups.parquet", data)
    for how in ({"coalescing": numparq.Coalescing(0, 1 << 20)}, {"filesystem": fsspec.filesystem("memory")}):
        with numparq.ParquetFile("/key-look-ups.parquet" if "filesystem" in how else data, **how) as file:
            for row in (10, 11, 12):
                assert file.read(["text"], filters=col("key") == 3 * row)["text"].tolist() == [f"name {row:05}"]
    assert not seen.done


def test_pages_and_row_groups_that_are_not_together() -> None:
    """What lies between them is not read."""
    starts = (0, 500, 0, 700, 900, 700)
    frame = pd.DataFrame({"key": np.concatenate([np.arange(start, start + PAGE) for start in starts])})
    for rows in (PAGE, 2 * PAGE, 3 * PAGE, 6 * PAGE):
        data = keyed_file(frame, row_group_size=rows)
        for key in (550, 550, 50, 551, 50, 950, 750):
            check_same(read(data, ["key"], col("key") == key), read_else(data, ["key"], col("key") == key))


def test_large_keys_beside_nulls() -> None:
    """They are no float64, which a column with nulls otherwise becomes that says nothing of its dtype."""
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
            ours, theirs = read(data, columns, col(name) == key), read_else(data, columns, col(name) == key)
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
def test_columns_in_other_forms(columns) -> None:
    def outcome(read_so):
        try:
            return read_so(data, columns(), col("key") == 33)[0]
        except Exception as error:
            return repr(error)

    data = keyed_file()
    for _ in range(3):
        ours, theirs = outcome(read), outcome(read_else)
        assert ours == theirs if isinstance(theirs, str) else ours.equals(theirs)


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_taken_as_by_other_reads(lie) -> None:
    for rows in (100, 101):
        data = forge(keyed_file(row_group_size=ROWS // 2, max_rows_per_page=rows), (lie,))
        for name, key in (("key", 3 * 3210), ("near", 230), ("back", 17)):
            prepare(data, ["key", "near", "any"], col(name) == 1)
            ours, theirs = (
                read(data, ["key", "near", "any"], col(name) == key),
                read_else(data, ["key", "near", "any"], col(name) == key),
            )
            check_same(ours[:1], theirs[:1])


def test_damage_is_told_as_by_other_reads() -> None:
    """Each byte of a page of either column, and of the indexes, in turn; others of the same footer are whole."""
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
    told = 0
    places = [(page, 40) for page in pages] + [(metadata.column_index_offset, 30), (metadata.offset_index_offset, 30)]
    for start, length in places:
        for place in range(start, start + length):
            damaged = data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]
            theirs = read_else(damaged, columns, filters)
            check_same(read(damaged, columns, filters)[:1], theirs[:1])
            told += isinstance(theirs[0], str)
            for _ in range(2):  # what damage has stopped goes on with the next kind
                check_same(read(data, columns, filters)[:1], read_else(data, columns, filters)[:1])
    assert told > 20


def with_damage(created_by: str) -> bytes:
    """Give a file in which the number of row 10 is another one than its page's checksum is of."""
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
    """Also of writers whose checksums are none, and of one that packs levels in an order of its own."""
    data, seen = with_damage(created_by), LookupCounter(monkeypatch)
    prepare(data, ["any"], col("key") == 600)  # in a page that is whole
    for verify_crc, times in zip((False, True), done, strict=True):
        seen.done = 0
        for _ in range(2):
            ours, theirs = (each(data, ["any"], col("key") == 30, verify_crc=verify_crc) for each in (read, read_else))
            check_same(ours[:1], theirs[:1])
            assert isinstance(ours[0], str) == (verify_crc and "jl" not in created_by)
        assert seen.done == times


def test_strings_of_a_dictionary(monkeypatch) -> None:
    """That it is one is seen before anything is read."""
    frame = keyed_frame().assign(text=[f"word {row % 5}" for row in range(ROWS)])
    data, seen = keyed_file(frame, column_encoding={"text": "RLE_DICTIONARY"}), LookupCounter(monkeypatch)
    for _ in range(3):
        check_same(read(data, ["text"], col("key") == 33), read_else(data, ["text"], col("key") == 33))
    assert not seen.done


def test_buffers_are_used_again(monkeypatch) -> None:
    data, seen, made = keyed_file(key_value_metadata={"of": "buffers"}), LookupCounter(monkeypatch), []
    for _ in range(2):
        prepare(data, ["text"], col("key") == 33)
    monkeypatch.setattr(scratch, "Scratch", lambda: made.append(1))
    for _ in range(3):
        prepare(data, ["text"], col("key") == 33)
    assert seen.done == 4
    assert not made


def test_files_of_one_footer(monkeypatch) -> None:
    """Each has its own indexes and pages: nothing of them is taken from another one."""
    seen = LookupCounter(monkeypatch)
    first = keyed_file(compression=None, column_encoding={"any": "PLAIN"}, write_page_checksum=False)
    with numparq.ParquetFile(first) as file:
        chunk = file.plan(["any"], filters=col("key") == 30)[0].chunks[0]
        place = int(chunk.offsets[0])
    values = keyed_frame()["any"].to_numpy()[:PAGE].tobytes()
    at = first.index(values, place)
    second = first[:at] + (keyed_frame()["any"].to_numpy()[:PAGE] + 1000).tobytes() + first[at + len(values) :]
    for _ in range(3):
        for data, more in ((first, 0), (second, 1000)):
            found = numparq.read_parquet(data, ["any"], filters=col("key") == 30)
            assert found["any"].tolist() == [keyed_frame()["any"][10] + more]
    assert seen.done


def test_an_open_file_reads_indexes_once(monkeypatch) -> None:
    data, seen = keyed_file(), LookupCounter(monkeypatch)
    prepare(data, ["text"], col("key") == 30)
    with numparq.ParquetFile(data) as file:

        def count(key: int) -> int:
            before = file.source.num_bytes
            assert len(file.read(["text"], filters=col("key") == key)) == 1
            return file.source.num_bytes - before

        first, again, other = count(30), count(33), count(3 * 2000)
        assert other > again < first
        assert count(3 * 2000) < other
    assert (seen.done, seen.left) == (4, 0)


@pytest.mark.parametrize("are_large", [True, False])
def test_what_is_kept_of_indexes(tmp_path, monkeypatch, are_large) -> None:
    """Of large ones nothing, once the file is closed; of small ones what was made of them the last time."""
    if are_large:
        monkeypatch.setattr("numparq.prune.index_reader._SHARED_BYTES", 0)
    path, alive = tmp_path / "file.parquet", weakref.WeakSet()
    path.write_bytes(keyed_file(key_value_metadata={"large": str(are_large)}))
    monkeypatch.setattr(
        LookupPlanner, "_made", lambda *arguments, made=LookupPlanner._made: noted(alive, made(*arguments))
    )
    for row in (10, 11, 2000, 3500):
        with numparq.ParquetFile(path) as file:
            alive.update((file, file.source))
            assert len(file.read(["text"], filters=col("key") == 3 * row)) == 1
        del file
    gc.collect()
    assert [type(each) for each in alive] == [ColumnIndexPruner] * (0 if are_large else 3)


def noted(alive: weakref.WeakSet, made: tuple) -> tuple:
    alive.add(made[1])
    return made


def test_index_columns_and_labels(monkeypatch) -> None:
    seen = LookupCounter(monkeypatch)
    for frame in (
        keyed_frame().set_index("near"),
        keyed_frame().set_index(["near", "key"]),
        keyed_frame().rename(columns={"any": "ä"}),
    ):
        data = keyed_file(frame, index=None)
        prepare(data, None, col("key") == 33)
        for key in (33, 34):
            check_same(read(data, None, col("key") == key), read_else(data, None, col("key") == key))
    assert seen.done == 6


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_frame(data) -> None:
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
    stored_as, columns = buffer.getvalue(), data.draw(st.sampled_from([None, ["text"], ["key", "null"]]))
    backend = data.draw(st.sampled_from(["numpy", "numpy_nullable", "pyarrow"]))
    for key in [*keys[:: max(rows // 5, 1)].tolist(), spread + 1, 1]:
        for _ in range(2):
            ours = read(stored_as, columns, col("key") == key, dtype_backend=backend)
        theirs = read_else(stored_as, columns, col("key") == key, dtype_backend=backend)
        check_same(ours[:1], theirs[:1])


def test_bounds(monkeypatch) -> None:
    """So many columns, and no more."""
    frame = pd.DataFrame({f"c{number}": np.arange(ROWS) for number in range(lookup.MAX_CHUNKS + 1)})
    data, seen = keyed_file(frame), LookupCounter(monkeypatch)
    for columns, done in ((None, 0), ([*frame][1:], 0), ([*frame][:-1], 1)):
        prepare(data, columns, col("c0") == 3)
        assert len(read(data, columns, col("c0") == 3)[0]) == 1
        assert seen.done == done
