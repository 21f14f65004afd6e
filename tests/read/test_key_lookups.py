"""Key look-ups through the public API: rows held against full reads, arguments, strings, changed files, threads."""

from __future__ import annotations

import gc
import io
import os
import threading
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from numparq import ParquetError, col
from numparq.io import local_source
from numparq.plan.row_ranges import RowRanges
from numparq.prune import planner
from numparq.prune.column_indexes import ColumnIndexPruner
from support.data.keyed_table import PAGE, ROWS, keyed_file, keyed_frame

COLUMNS = (None, ["text", "key", "some"], ["any"], ["maybe", "flag"])
WHEN = pd.Timestamp("2020-01-02 03:04", tz="UTC")
FILTERS = {
    "key": (col("key") == 9630, lambda frame: frame["key"] == 9630),
    "no key": (col("key") == 9631, lambda frame: frame["key"] == 9631),
    "over row groups": ((col("key") >= 4470) & (col("key") < 4515), lambda frame: frame["key"].between(4470, 4514)),
    "two columns": (
        (col("key") > 300) & (col("back") > ROWS - 110) & (col("any") < 25),
        lambda frame: (frame["key"] > 300) & (frame["back"] > ROWS - 110) & (frame["any"] < 25),
    ),
    "or": ((col("key") == 30) | (col("near") == 700), lambda frame: (frame["key"] == 30) | (frame["near"] == 700)),
    "text or number": (
        (col("text") >= "name 04321") | (col("any") == 7),
        lambda frame: (frame["text"] >= "name 04321") | (frame["any"] == 7),
    ),
    "isin": (col("near").isin([3, 130, 214]), lambda frame: frame["near"].isin([3, 130, 214])),
    "small": (col("small") == -7, lambda frame: frame["small"] == -7),
    "text": (col("text") == "name 04321", lambda frame: frame["text"] == "name 04321"),
    "prefix": (col("text").startswith("name 0007"), lambda frame: frame["text"].str.startswith("name 0007")),
    "float": (~(col("float") < 740.0), lambda frame: ~(frame["float"] < 740.0) & frame["float"].notna()),
    "nullable": (col("some").between(4000, 4050), lambda frame: frame["some"].between(4000, 4050).fillna(False)),
    "null": (
        col("maybe").is_null() & (col("key") < 1200),
        lambda frame: frame["maybe"].isna() & (frame["key"] < 1200),
    ),
    "when": (col("when") == WHEN, lambda frame: frame["when"] == WHEN),
    "unsorted": (col("any") == 7, lambda frame: frame["any"] == 7),
    "all": (col("key") >= 0, lambda frame: frame["key"] >= 0),
}
LAYOUTS = {
    "snappy": {},
    "v2": {"compression": None, "data_page_version": "2.0"},
    "dictionaries": {"use_dictionary": True},
    "dictionary and plain": {"column_encoding": {"near": "RLE_DICTIONARY", "key": "PLAIN"}},
    "no page index": {"write_page_index": False},
    "no statistics": {"write_statistics": False},
    "Bloom filters": {"bloom_filter_options": {"key": True, "text": True}},
    "one row group": {"row_group_size": ROWS},
    "many row groups": {"row_group_size": 2 * PAGE},
    "one page": {"max_rows_per_page": 1 << 20, "row_group_size": 1 << 20},
    "delta": {"column_encoding": {"text": "DELTA_BYTE_ARRAY", "back": "BYTE_STREAM_SPLIT"}},
}


def check_rows(file, columns, filters, mask, **options) -> None:
    """Check that a filtered read has the masked rows of a full read; twice, with an empty cache and a warm one."""
    every = file.read(**options)
    rows = np.asarray(mask(file.read()), dtype=bool)
    expected = every if columns is None else every[columns]
    for _ in range(2):
        found = file.read(columns, filters=filters, **options)
        pd.testing.assert_frame_equal(found, expected[rows].reset_index(drop=True), check_index_type=False)


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FILTERS)
def test_rows_are_those_of_a_full_read(layout, name) -> None:
    with numparq.ParquetFile(keyed_file(**LAYOUTS[layout])) as file:
        for columns in COLUMNS:
            for backend in ("numpy", "pyarrow"):
                check_rows(file, columns, *FILTERS[name], dtype_backend=backend)


def test_rows_of_chosen_row_groups_and_row_ranges() -> None:
    with numparq.ParquetFile(keyed_file()) as file:
        keys = file.read(["key"], filters=col("near") == 214, row_groups=[1, 0])["key"].tolist()
        assert keys == [4500, 4503, 4506, 4509, 4512, 4494, 4497]
        assert len(file.read(["key"], filters=col("near") == 214, row_range=(1499, 1501))) == 2
        assert len(file.read(["key"], filters=col("near") == 214, nrows=3)) == 3


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("name", FILTERS)
def test_rows_after_a_read_of_a_row_range(name) -> None:
    """What a read of some rows leaves in the cache does not narrow the next one."""
    filters, mask = FILTERS[name]
    with numparq.ParquetFile(keyed_file(row_group_size=ROWS)) as file:
        every = file.read()
        for start, stop in ((120, 450), (0, 10), (ROWS - 700, ROWS)):
            expected = every.iloc[start:stop]
            expected = expected[np.asarray(mask(expected), dtype=bool)].reset_index(drop=True)
            found = file.read(filters=filters, row_range=(start, stop))
            pd.testing.assert_frame_equal(found, expected, check_index_type=False)
            check_rows(file, None, filters, mask)


def test_unordered_pages() -> None:
    """The bounds of pages go up and down, and one page has only nulls."""
    numbers = np.arange(600)
    pages = [numbers[start : start + PAGE] for start in (300, 0, 500, 100, 0)]
    keys = pd.array(np.concatenate(pages), "Int64")
    keys[400:] = pd.NA
    frame = pd.DataFrame({"key": keys, "text": [f"row {row}" for row in range(500)]})
    with numparq.ParquetFile(keyed_file(frame, row_group_size=1000)) as file:
        for key in (0, 99, 100, 399, 555):
            check_rows(file, None, col("key") == key, lambda frame, key=key: (frame["key"] == key).fillna(False))


def test_large_keys_beside_nulls() -> None:
    """Such keys are not exact in float64, the dtype of integers with nulls."""
    numbers, buffer = np.arange(ROWS), io.BytesIO()
    key = pa.array(numbers + (1 << 62), mask=numbers % 400 == 7)
    pq.write_table(pa.table({"key": key, "row": numbers}), buffer, write_batch_size=PAGE, write_page_index=True)
    for row, rows in ((2051, [2051]), (2007, []), (2050, [2050])):
        found = numparq.read_parquet(buffer.getvalue(), ["row"], filters=col("key") == (1 << 62) + row)
        assert found["row"].tolist() == rows


def test_damage_raises_or_does_not_matter() -> None:
    """Damages each byte of a page and of the indexes; reads of the sound file go on between."""
    data = keyed_file(compression=None, row_group_size=ROWS)
    columns, filters = ["key", "float"], col("key") == 6150
    with numparq.ParquetFile(data) as file:
        chunk = file.plan(columns, filters=filters)[0].chunks[0]
        page = int(chunk.offsets[chunk.pages_with_rows(RowRanges.from_range(2050, 2051))[0]])
        metadata = file.metadata.row_groups[0].columns[0]
    expected, num_errors = numparq.read_parquet(data, columns, filters=filters), 0
    for start, length in ((page, 60), (metadata.offset_index_offset, 30)):
        for place in range(start, start + length):
            try:
                found = numparq.read_parquet(
                    data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :], columns, filters=filters
                )
            except ParquetError:
                num_errors += 1
            else:
                pd.testing.assert_frame_equal(found, expected)
            pd.testing.assert_frame_equal(numparq.read_parquet(data, columns, filters=filters), expected)
    assert num_errors > 20


def test_files_with_equal_footers() -> None:
    """Indexes and pages of one file are never used for another."""
    first = keyed_file(compression=None, column_encoding={"any": "PLAIN"}, write_page_checksum=False)
    values = keyed_frame()["any"].to_numpy()[:PAGE]
    place = first.index(values.tobytes())
    second = first[:place] + (values + 1000).tobytes() + first[place + values.nbytes :]
    with numparq.ParquetFile(first) as file:
        index = file.metadata.row_groups[0].columns[0].column_index_offset
    third = first[:index] + bytes(8) + first[index + 8 :]
    for _ in range(3):
        for data, more in ((first, 0), (second, 1000), (third, 0)):
            found = numparq.read_parquet(data, ["any"], filters=col("key") == 30)
            assert found["any"].tolist() == [values[10] + more]


def test_open_file_reads_indexes_once() -> None:
    with numparq.ParquetFile(keyed_file()) as file:

        def count(columns, filters) -> int:
            before = file._file.source.num_bytes
            assert len(file.read(columns, filters=filters)) == 1
            return file._file.source.num_bytes - before

        key, back = col("key") == 30, (col("key") == 30) & (col("back") == ROWS - 11)
        first, again = count(["text"], key), count(["text"], key)
        more, both_known = count(["text"], back), count(["text"], back)
        assert first > again
        assert more > both_known
        assert more - both_known < 2 * (first - again)  # the indexes of another column, and not of all
        assert count(["text"], key) == again


@pytest.mark.parametrize("is_new", [True, False])
def test_only_indexes_of_settled_files_stay_cached_after_close(tmp_path, monkeypatch, is_new) -> None:
    if not is_new:
        monkeypatch.setattr(local_source, "SETTLED_NS", 0)
    path, alive, made = tmp_path / "file.parquet", weakref.WeakSet(), weakref.WeakSet()
    path.write_bytes(keyed_file(key_value_metadata={"new": str(is_new)}))

    def recorded(*arguments):
        pruner = ColumnIndexPruner(*arguments)
        made.add(pruner)
        return pruner

    monkeypatch.setattr(planner, "ColumnIndexPruner", recorded)
    for row in (10, 11, 2000, 3500):
        with numparq.ParquetFile(path) as file:
            alive.update((file, file._file.source))
            assert len(file.read(["text"], filters=col("key") == 3 * row)) == 1
        del file
    gc.collect()
    assert not alive
    assert len(made) == (0 if is_new else 3)


@given(st.data())
def test_random_frames(data) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    rows, spread = data.draw(st.integers(1, 400)), data.draw(st.sampled_from([3, 40, 10_000]))
    dtype = data.draw(st.sampled_from(["int64", "int32", "int16", "uint32", "uint64", "Int64", "float64"]))
    keys = rng.integers(0, spread, rows)
    keys = np.sort(keys) if data.draw(st.booleans()) else keys
    column = pd.Series(keys).astype(dtype)
    if dtype == "Int64":
        column[rng.random(rows) < 0.2] = pd.NA
    frame = pd.DataFrame({"key": column, "text": [f"t{n}" * (n % 4) for n in range(rows)]})
    frame["null"] = [None if n % 3 else n / 2 for n in range(rows)]
    options = {
        "row_group_size": data.draw(st.sampled_from([50, 200, 1000])),
        "max_rows_per_page": data.draw(st.sampled_from([7, 30, 1000])),
        "use_dictionary": data.draw(st.booleans()),
        "compression": data.draw(st.sampled_from(["snappy", None, "zstd"])),
    }
    columns = data.draw(st.sampled_from([None, ["text"], ["key", "null"]]))
    with numparq.ParquetFile(numparq.to_parquet(frame, **options)) as file:
        for key in [*keys[:: max(rows // 5, 1)].tolist(), spread + 1, 1]:
            check_rows(file, columns, col("key") == key, lambda frame, key=key: (frame["key"] == key).fillna(False))


@pytest.mark.parametrize("threads", [0, -1, "2", True])
def test_threads_argument_is_checked(threads) -> None:
    data = keyed_file()
    for _ in range(3):
        with pytest.raises((ValueError, TypeError), match="threads"):
            numparq.read_parquet(data, filters=col("key") == 30, threads=threads)
        numparq.read_parquet(data, filters=col("key") == 30)


def test_invalid_utf8_is_an_error() -> None:
    frame = keyed_frame()
    data = keyed_file(frame[["key", "text"]], compression=None, write_page_checksum=False)
    data = data.replace(b"name 03210", b"name \xff3210")
    for _ in range(3):
        with pytest.raises(ParquetError, match=r"UTF-8.*row group 2, column 'text'") as caught:
            numparq.read_parquet(data, filters=col("key") == 3 * 3210)
        assert "page" in str(caught.value)
        assert numparq.read_parquet(data, filters=col("key") == 3 * 3220)["text"].tolist() == ["name 03220"]


def test_changed_file_is_an_error(tmp_path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(keyed_file())
    with numparq.ParquetFile(path) as file:
        for _ in range(3):
            assert len(file.read(filters=col("key") == 30)) == 1
        path.write_bytes(keyed_file(key_value_metadata={"other": "file"}))
        os.utime(path, (1, 1))
        with pytest.raises(ParquetError, match="changed"):
            file.read(filters=col("key") == 30)


def test_concurrent_lookups(tmp_path) -> None:
    path, failures = tmp_path / "file.parquet", []
    data = keyed_file()
    path.write_bytes(data)

    def work(seed: int) -> None:
        for row in np.random.default_rng(seed).integers(0, ROWS, 60).tolist():
            got = numparq.read_parquet(path, ["key", "text"], filters=col("key") == 3 * row)
            if got.to_numpy().tolist() != [[3 * row, f"name {row:05}"]]:
                failures.append((row, got))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
