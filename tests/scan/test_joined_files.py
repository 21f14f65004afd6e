"""Small files decoded together: several row groups, columns that share a block, and strings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.column.jobs import schedule
from numparq.column.jobs.byte_array_sink import ByteArraySink
from numparq.column.read.chunk_table import ChunkTables
from numparq.dataset.discover import open_files
from numparq.errors import CorruptPageError
from numparq.scan import joined_files
from support.files.edited_footers import write_with_footer
from support.files.page_damage import edit_footer


@pytest.fixture(params=["in memory", "on disk", "without tails"])
def place(request, monkeypatch):
    """Have small files read whole, or as larger ones, or as those of many whose tails are not held."""
    if request.param == "without tails":
        monkeypatch.setattr(open_files, "MAX_LOCAL_TAIL_BYTES", 0)
    if request.param != "in memory":
        monkeypatch.setattr(open_files, "open_small_files", lambda paths, names, most: [None] * len(paths))
        monkeypatch.setattr(open_files, "MIN_TAIL_BYTES", 8)
        monkeypatch.setattr(open_files, "MAX_SMALL_FILE_BYTES", 8)


def make_frame(seed: int, rows: int = 50) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {f"i{column}": rng.integers(0, 1 << 40, rows) for column in range(3)}
    floats = {f"f{column}": rng.normal(size=rows) for column in range(3)}
    return pd.DataFrame({**numbers, **floats, "s": rng.choice(["x", "yy", ""], rows), "b": rng.random(rows) < 0.5})


@pytest.mark.parametrize(("files", "groups"), [(1, []), (2, [2, 2, 2]), (4, [4, 2]), (9, [6])])
def test_batches_of_row_groups_and_blocks(tmp_path, monkeypatch, files, groups):
    frames = [make_frame(seed, 40 + seed) for seed in range(6)]
    for seed, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{seed}.parquet", row_group_size=15)
    largest = max(path.stat().st_size for path in tmp_path.iterdir())
    monkeypatch.setattr(joined_files, "MAX_JOINED_BYTES", files * largest)
    joined = []
    init = joined_files.JoinedFile.__init__
    monkeypatch.setattr(
        joined_files.JoinedFile, "__init__", lambda self, *rest: (joined.append(self), init(self, *rest))[1]
    )
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path), pd.concat(frames, ignore_index=True))
    assert [len(each.files) for each in joined] == groups


def test_columns_of_different_types_between_files(tmp_path):
    for number in range(4):
        wide = pa.int64() if number == 3 else pa.int32()
        table = pa.table({"a": pa.array([number, 10 + number], wide), "n": [{"x": number}, {"x": 7}], "z": [1.5, 2.5]})
        if number == 3:
            table = table.set_column(1, "n", pa.array([{"x": 3, "y": "u"}, None]))
        pq.write_table(table, tmp_path / f"{number}.parquet")
    found = numparq.read_parquet(tmp_path)
    assert found["a"].tolist() == [0, 10, 1, 11, 2, 12, 3, 13]
    assert [row and row["x"] for row in found["n"]] == [0, 7, 1, 7, 2, 7, 3, None]
    assert found["z"].tolist() == [1.5, 2.5] * 4


WRITE_OPTIONS = [
    {"use_dictionary": True},
    {"use_dictionary": False},
    {"use_dictionary": True, "compression": "none"},
    {"use_dictionary": True, "compression": "zstd", "data_page_version": "2.0"},
    {"use_dictionary": False, "column_encoding": {"s": "DELTA_BYTE_ARRAY"}},
    {"use_dictionary": False, "column_encoding": {"s": "DELTA_LENGTH_BYTE_ARRAY"}},
    {"use_dictionary": True, "dictionary_pagesize_limit": 64},
]


def strings(seed: int, rows: int = 60, nulls: float = 0.2) -> list[str | None]:
    rng = np.random.default_rng(seed)
    words = [f"{'ü' * int(rng.integers(0, 30))}{number}" for number in range(20)]
    return [None if rng.random() < nulls else words[int(at)] for at in rng.integers(0, len(words), rows)]


@pytest.fixture
def task_chunk_counts(monkeypatch):
    """Return the list of chunk counts of the string tasks that have run."""
    found: list[int] = []
    start = ByteArraySink.start
    monkeypatch.setattr(
        ByteArraySink, "start", lambda self, task: (found.append(len(task.source.chunks)), start(self, task))[1]
    )
    return found


@pytest.mark.parametrize("nulls", [0, 0.2, 1])
@pytest.mark.parametrize("way", [*range(len(WRITE_OPTIONS)), "each"])
def test_string_dictionaries_and_encodings(tmp_path, task_chunk_counts, way, nulls):
    values = [strings(seed, 60 + seed, nulls) for seed in range(8)]
    for number, one in enumerate(values):
        how = WRITE_OPTIONS[number % len(WRITE_OPTIONS) if way == "each" else way]
        table = pa.table({"s": pa.array(one, pa.string()), "n": range(len(one))})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=25, data_page_size=100, **how)
    found = numparq.read_parquet(tmp_path)
    assert [None if value is np.nan else value for value in found["s"]] == [value for one in values for value in one]
    assert found["s"].isna().sum() == sum(value is None for one in values for value in one)
    assert task_chunk_counts
    assert sum(task_chunk_counts) == sum(pq.read_metadata(path).num_row_groups for path in tmp_path.iterdir())


def test_string_tasks_split_at_missing_column(tmp_path, task_chunk_counts):
    for number in range(6):
        columns = {"n": [number] * 3} | ({} if number == 3 else {"s": [f"{number}", None, "x"]})
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    found = numparq.read_parquet(tmp_path, dtype_backend="pyarrow")
    expected = [
        None if number == 3 or at == 1 else [f"{number}", None, "x"][at] for number in range(6) for at in range(3)
    ]
    assert found["s"].tolist() == [pd.NA if value is None else value for value in expected]
    assert task_chunk_counts == [3, 2]


def test_string_tasks_exclude_distant_or_large_chunks(tmp_path, task_chunk_counts, monkeypatch):
    values = [strings(seed, 200, 0) for seed in range(6)]
    values[2] = ["long" * 300 + str(number) for number in range(200)]
    for number, one in enumerate(values):
        table = pa.table({"s": one, "n": np.random.default_rng(number).random(len(one))})
        pq.write_table(table, tmp_path / f"{number}.parquet", compression="none")
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    monkeypatch.setattr(schedule, "MAX_COALESCED_BYTES", 5 * min(sizes) // 2)
    assert numparq.read_parquet(tmp_path)["s"].tolist() == [value for one in values for value in one]
    assert sum(task_chunk_counts) == 6
    assert 1 in task_chunk_counts
    assert max(task_chunk_counts) > 1


def test_underestimated_string_sizes(tmp_path, task_chunk_counts, monkeypatch):
    values = [strings(seed) for seed in range(5)]
    for number, one in enumerate(values):
        pq.write_table(pa.table({"s": one}), tmp_path / f"{number}.parquet")
    monkeypatch.setattr(ChunkTables, "estimate_string_bytes", lambda *_: 0)
    found = numparq.read_parquet(tmp_path, dtype_backend="pyarrow")["s"]
    assert found.isna().tolist() == [value is None for one in values for value in one]
    assert found.dropna().tolist() == [value for one in values for value in one if value is not None]
    assert task_chunk_counts == [5]


@pytest.mark.parametrize("dictionary", [True, False])
def test_invalid_utf8_names_its_file(tmp_path, dictionary):
    for number in range(6):
        words = [b"ok", b"\xff" if number == 4 else b"good", b"ok"]
        table = pa.table({"s": pa.array(words, pa.binary()).view(pa.string())})
        pq.write_table(
            table,
            tmp_path / f"{number}.parquet",
            use_dictionary=dictionary,
            compression="none",
            row_group_size=2,
            store_schema=False,
        )
    with pytest.raises(CorruptPageError, match="UTF-8") as caught:
        numparq.read_parquet(tmp_path)
    where = caught.value.where
    assert where["file"].endswith("4.parquet")
    assert (where["row_group"], where["column"]) == (0, "s")
    assert where["page"] == 0


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("page", ["dictionary", "data"])
def test_damaged_page_names_its_file(tmp_path, page):
    for number in range(5):
        pq.write_table(
            pa.table({"s": ["one", "two", "one"]}),
            tmp_path / f"{number}.parquet",
            compression="none",
            write_page_checksum=True,
        )
    path = tmp_path / "3.parquet"
    chunk = pq.read_metadata(path).row_group(0).column(0)
    data = bytearray(path.read_bytes())
    position = data.index(b"one", chunk.dictionary_page_offset) if page == "dictionary" else chunk.data_page_offset
    if page == "data":
        position = chunk.dictionary_page_offset + chunk.total_compressed_size - 1
    data[position] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptPageError) as caught:
        numparq.read_parquet(tmp_path)
    where = caught.value.where
    assert where["file"].endswith("3.parquet")
    assert (where["row_group"], where["column"]) == (0, "s")
    assert where["page"] == (page == "data")


@pytest.mark.parametrize("backend", ["numpy", "pyarrow"])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.usefixtures("place")
def test_joined_files_read_as_apart(tmp_path, monkeypatch, backend, ordered):
    """Virtual and partition columns, categories, nested columns, a missing column, and an empty file between."""
    for number in range(7):
        count = 0 if number == 2 else 20 + number
        order = ["w", "z", "y", "x"] if number == 3 and not ordered else ["x", "y", "z", "w"]
        frame = make_frame(number, count)
        frame["category"] = pd.Categorical(frame["s"].replace({"": "x", "yy": "y"}), categories=order, ordered=True)
        frame["nested"] = [[{"a": value, "b": None}] if value % 2 else None for value in frame["i0"]]
        if number in (2, 4):
            frame = frame.drop(columns=["i1", "s", *(["nested"] if number == 2 else [])])
        folder = tmp_path / f"key={number % 2}"
        folder.mkdir(exist_ok=True)
        numparq.to_parquet(frame, folder / f"{number}.parquet", row_group_size=8)
    options = {"include": ["file", "row_group", "row_number"], "dtype_backend": backend}
    found = numparq.read_parquet(tmp_path, **options)
    some = numparq.read_parquet(tmp_path, nrows=90, **options)
    monkeypatch.setattr(joined_files, "MAX_JOINED_BYTES", 0)
    apart = numparq.read_parquet(tmp_path, **options)
    pd.testing.assert_frame_equal(found, apart)
    pd.testing.assert_frame_equal(some, numparq.read_parquet(tmp_path, nrows=90, **options))
    assert len(found) == sum(20 + number for number in range(7) if number != 2)
    if backend == "numpy":
        assert found["category"].dtype.ordered == ordered
    assert found.groupby("file")["row_number"].apply(list).map(lambda rows: rows == list(range(len(rows)))).all()


@pytest.mark.usefixtures("place")
def test_inconsistent_nested_column_names_its_file(tmp_path):
    """What is found wrong when the column is built, after decoding, names file and row group, too."""
    table = pa.table({"s": [{"x": 1, "y": 2}, None, {"x": 3, "y": 4}, {"x": 5, "y": 6}]})
    for number in range(4):
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=2)

    def swap(footer):
        first, second = (group.columns[1].meta_data for group in footer.row_groups)
        second.data_page_offset, first.data_page_offset = first.data_page_offset, second.data_page_offset
        second.dictionary_page_offset, first.dictionary_page_offset = (
            first.dictionary_page_offset,
            second.dictionary_page_offset,
        )
        sizes = first.total_compressed_size, second.total_compressed_size
        second.total_compressed_size, first.total_compressed_size = sizes

    path = tmp_path / "2.parquet"
    path.write_bytes(edit_footer(path.read_bytes(), swap))
    with pytest.raises(numparq.InvalidFileError) as caught:
        numparq.read_parquet(tmp_path)
    where = caught.value.where
    assert (where["file"].rpartition("/")[2], where["row_group"], where["column"]) == ("2.parquet", 0, "s")


def test_files_of_one_writer_are_joined(tmp_path, monkeypatch):
    """Defects of pages and statistics depend on the writer."""
    joined = []
    init = joined_files.JoinedFile.__init__
    monkeypatch.setattr(
        joined_files.JoinedFile, "__init__", lambda self, *rest: (joined.append(self), init(self, *rest))[1]
    )
    for number, writer in enumerate(["one", "one", "another", "another", "another", "one"]):

        def edit(footer, writer=writer):
            footer.created_by = f"{writer} version 1.0"

        (tmp_path / f"{number}.parquet").write_bytes(write_with_footer(pa.table({"a": [number]}), edit))
    assert numparq.read_parquet(tmp_path)["a"].tolist() == [*range(6)]
    assert [len(each.files) for each in joined] == [2, 3]


def test_files_of_other_schemas_are_joined_by_the_columns_read(tmp_path, monkeypatch):
    joined = []
    init = joined_files.JoinedFile.__init__
    monkeypatch.setattr(
        joined_files.JoinedFile, "__init__", lambda self, *rest: (joined.append(self), init(self, *rest))[1]
    )
    columns = {"a": range(10), "s": [f"text {number}" for number in range(10)], "n": [[number] for number in range(10)]}
    for number in range(9):
        more = {"b": [number] * 10, "c": ["x"] * 10}
        table = pa.table({**columns, **dict(list(more.items())[: number % 3])})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=4)
    found = numparq.read_parquet(tmp_path, columns=["s", "a"])
    assert found["a"].tolist() == [*range(10)] * 9
    assert found["s"].tolist() == columns["s"] * 9
    assert [len(each.files) for each in joined] == [9]
    joined.clear()
    every = numparq.read_parquet(tmp_path)
    assert every["b"].dropna().tolist() == [number for number in range(9) if number % 3 for _ in range(10)]
    assert every["c"].notna().sum() == 30
    assert [list(row) for row in every["n"]] == [[number] for number in range(10)] * 9
    assert not joined


@pytest.mark.parametrize("options", [{}, {"include": ["file", "row_number"]}, {"columns": ["n", "key"]}], ids=repr)
def test_first_rows_of_a_filter_that_partitions_decide(tmp_path, options):
    for number in range(6):
        folder = tmp_path / f"key={'ab'[number % 2]}"
        folder.mkdir(exist_ok=True)
        pq.write_table(pa.table({"n": [10 * number, 10 * number + 1]}), folder / f"{number}.parquet")
    expected = [0, 1, 20, 21, 40, 41]
    filters = numparq.col("key") == "a"
    for nrows in range(8):
        found = numparq.read_parquet(tmp_path, filters=filters, nrows=nrows, **options)
        assert found["n"].tolist() == expected[:nrows]
        batches = list(numparq.Dataset(tmp_path).iter_batches(filters=filters, nrows=nrows, **options))
        assert [row for batch in batches for row in batch["n"]] == expected[:nrows]


@pytest.mark.parametrize("rows", [30, 20_000])
def test_damaged_chunk_metadata_names_its_file(tmp_path, rows):
    numbers = np.random.default_rng(0).integers(0, 1 << 40, rows)
    for number in range(4):
        pq.write_table(pa.table({"a": numbers}), tmp_path / f"{number}.parquet", store_schema=False)
    path = tmp_path / "2.parquet"
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    named = set()
    for place in range(start, len(data) - 8):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            numparq.read_parquet(tmp_path)
        except numparq.ParquetError as error:
            named.add(error.where.get("file"))
    assert str(path) in named
    assert named <= {str(path), None}


def test_files_in_memory_and_not(tmp_path, monkeypatch):
    """Small files in several buffers, with larger ones between them."""
    from numparq.io import small_files

    sizes = [3, 3, 20_000, 3, 3, 3, 3, 3, 20_000, 20_000]
    for number, size in enumerate(sizes):
        pq.write_table(pa.table({"a": np.arange(size) + number}), tmp_path / f"{number}.parquet")
    monkeypatch.setattr(small_files, "MAX_BUFFER_BYTES", 3 * (tmp_path / "0.parquet").stat().st_size)
    expected = [value for number, size in enumerate(sizes) for value in range(number, number + size)]
    assert numparq.read_parquet(tmp_path)["a"].tolist() == expected
