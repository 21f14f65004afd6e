"""Many local files pruned by one table of their footers: results, dtypes, plans and errors of files that are opened."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from numparq.dataset.discover import open_files
from numparq.dataset.prune import unopened_files
from numparq.format.footer import footer_table
from numparq.format.footer.footer_table import FooterTable
from numparq.format.open_file import OpenFile
from numparq.prune import index_reader, planner
from numparq.scan import joined_files

FILES = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder of files with growing ids; one in three has a null."""
    path = tmp_path_factory.mktemp("many")
    for number in range(FILES):
        ids = np.arange(number * 10, number * 10 + 10)
        counts = pd.array([None if number % 3 == 0 and row == 4 else row for row in range(10)], "Int64")
        frame = pd.DataFrame({"id": ids, "count": counts, "name": [f"n{value % 7}" for value in ids]})
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path / f"{number:03}.parquet")
    return path


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """Return the names of the files that are opened."""
    names: list[str] = []
    from_source, table_open = OpenFile.from_source.__func__, unopened_files.UnparsedFile.__init__

    def counted(cls, source, *rest):
        names.append(Path(source.name).stem)
        return from_source(cls, source, *rest)

    def counted_too(self, source, *rest):
        names.append(Path(source.name).stem)
        table_open(self, source, *rest)

    monkeypatch.setattr(OpenFile, "from_source", classmethod(counted))
    monkeypatch.setattr(unopened_files.UnparsedFile, "__init__", counted_too)
    return names


def test_only_matching_files_are_opened(folder, opened):
    found = numparq.read_parquet(folder, filters=col("id") == 123)
    assert found["id"].tolist() == [123]
    assert sorted(opened) == ["000", "012"], "the first stands for all as to columns"


def test_plans_show_the_files_that_are_not_read(folder):
    with numparq.Dataset(folder) as dataset:
        plan = dataset.plan(filters=col("id") >= 385)
        assert "statistics" in plan.explain()
        assert [Path(name).stem for name, _ in plan.files] == ["038", "039"]
        assert dataset.count_rows(col("id") >= 385) == 15


@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("literal", [-1, 0, 5, 395, 1000])
def test_dtypes_do_not_depend_on_literals(folder, backend, literal):
    whole = numparq.read_parquet(folder, dtype_backend=backend)
    found = numparq.read_parquet(folder, filters=col("id") == literal, dtype_backend=backend)
    assert found.dtypes.equals(whole.dtypes)
    expected = whole[whole["id"] == literal].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected, check_index_type=False)


def test_categories_of_all_files(tmp_path):
    for number in range(20):
        frame = pd.DataFrame({"id": [number], "kind": pd.Categorical([f"k{number}"])})
        numparq.to_parquet(frame, tmp_path / f"{number:02}.parquet")
    found = numparq.read_parquet(tmp_path, filters=col("id") == 3)
    assert [*found["kind"].cat.categories] == [f"k{number}" for number in range(20)]


def test_range_indexes_of_pandas_are_no_difference(tmp_path):
    """Bounds of a RangeIndex count the rows of a file, in pandas' metadata and in the Arrow schema."""
    paths = []
    for number in range(20):
        frame = pd.DataFrame({"id": np.arange(number + 1) + 100 * number})
        paths.append(str(tmp_path / f"{number:02}.parquet"))
        frame.to_parquet(paths[-1])
    table = FooterTable(paths)
    assert len(table.groups) <= 2, "of one digit, and of two"
    assert sorted(int(at) for group in table.groups for at in group) == [*range(20)]
    assert table.row_counts == [*range(1, 21)]


def test_other_columns_are_another_group(tmp_path):
    paths = []
    for number in range(12):
        columns = {"id": [number]} | ({"more": [1.5]} if number % 4 == 1 else {})
        kind = {"id": pa.int32() if number == 7 else pa.int64()}
        paths.append(str(tmp_path / f"{number:02}.parquet"))
        pq.write_table(
            pa.table({name: pa.array(values, kind.get(name)) for name, values in columns.items()}), paths[-1]
        )
    groups = [group.tolist() for group in FooterTable(paths).groups]
    assert sorted(groups) == [[0, 2, 3, 4, 6, 8, 10, 11], [1, 5, 9], [7]]


def test_files_that_are_no_parquet_files_have_their_own_errors(folder, tmp_path):
    for number in range(20):
        (tmp_path / f"{number:02}.parquet").write_bytes((folder / f"{number:03}.parquet").read_bytes())
    broken = tmp_path / "07.parquet"
    data = bytearray(broken.read_bytes())
    for change in (data[:-4] + b"PAR2", data[:8], data[:-8] + b"\xff\xff\xff\x7fPAR1"):
        broken.write_bytes(bytes(change))
        with pytest.raises(numparq.InvalidFileError, match=r"07\.parquet"):
            numparq.read_parquet(tmp_path, filters=col("id") == 3)


def test_any_damaged_byte_of_a_footer(folder, tmp_path, monkeypatch):
    """A footer with a changed byte has the result, or the error, that it has without the table."""
    for number in range(16):
        (tmp_path / f"{number:02}.parquet").write_bytes((folder / f"{number:03}.parquet").read_bytes())
    broken = tmp_path / "05.parquet"
    data = broken.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    rng, checked = np.random.default_rng(3), 0
    for at in rng.choice(np.arange(start, len(data) - 8), 60, replace=False).tolist():
        broken.write_bytes(data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :])
        outcomes = []
        for least in (2, 1 << 40):
            monkeypatch.setattr(unopened_files, "_MIN_FILES", least)
            try:
                outcomes.append(numparq.read_parquet(tmp_path, filters=col("id") >= 50))
            except numparq.ParquetError as error:
                outcomes.append(error)
        with_table, without = outcomes
        if isinstance(without, pd.DataFrame) and isinstance(with_table, pd.DataFrame):
            pd.testing.assert_frame_equal(with_table, without)
            checked += 1
        else:
            assert isinstance(without, numparq.ParquetError)
            # A file without a matching row is not opened: damage that only its own read meets goes unseen.
            assert isinstance(with_table, pd.DataFrame) or str(with_table) == str(without)
    assert checked


def test_files_replaced_while_they_are_opened(folder, tmp_path, monkeypatch):
    """A file that is another one by then has its new rows, after the files are listed again."""
    for number in range(20):
        (tmp_path / f"{number:02}.parquet").write_bytes((folder / f"{number + 1:03}.parquet").read_bytes())
    prune, replaced = unopened_files.UnopenedFiles.prune, []

    def replace(self, filters):
        found = prune(self, filters)
        if replaced:
            return found
        replaced.append("04.parquet")
        frame = pd.DataFrame({"id": [55, 56], "count": pd.array([None, 1], "Int64"), "name": ["new", "new"]})
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "04.parquet")
        return found

    monkeypatch.setattr(unopened_files.UnopenedFiles, "prune", replace)
    found = numparq.read_parquet(tmp_path, filters=col("id") == 55)
    assert found["name"].tolist() == ["new"]
    assert found["count"].isna().tolist() == [True]


def test_long_footers(tmp_path, monkeypatch):
    """Footers longer than the part that is read first, and those beyond all limits."""
    for number in range(20):
        table = pa.table({"id": [number]}).replace_schema_metadata({"note": "x" * (5000 * (number % 4))})
        pq.write_table(table, tmp_path / f"{number:02}.parquet")
    assert numparq.read_parquet(tmp_path, filters=col("id") == 15)["id"].tolist() == [15]
    for limit in ("_MAX_FOOTER_BYTES", "_MAX_BYTES"):
        with monkeypatch.context() as patched:
            patched.setattr(footer_table, limit, 16 << 10)
            assert numparq.read_parquet(tmp_path, filters=col("id") == 15)["id"].tolist() == [15]
    monkeypatch.setattr(footer_table, "_ARENA_WORDS", 8)
    assert numparq.read_parquet(tmp_path, filters=col("id") == 15)["id"].tolist() == [15]


def write_random_folder(path: Path, seed: int) -> int:
    """Write files of several writers, with drifting columns, nulls and empty ones; return the end of the ids."""
    rng, pick = np.random.default_rng(seed), random.Random(seed)
    drifts, base = pick.random() < 0.5, 0
    for number in range(pick.choice([3, 18, 40])):
        rows = pick.choice([0, 1, 30, 50])
        frame = pd.DataFrame(
            {
                "id": np.arange(base, base + rows),
                "u": rng.integers(0, 1000, rows),
                "s": [f"n{value}" for value in rng.integers(0, 50, rows)],
                "x": rng.random(rows),
            }
        )
        base += rows
        if rows and pick.random() < 0.5:
            frame.loc[rng.random(rows) < 0.1, "s"] = None
        if drifts and pick.random() < 0.2:
            frame = frame.drop(columns="x")
        if drifts and pick.random() < 0.2:
            frame["u"] = frame["u"].astype("float64")
        place = path / f"k={number % 3}" / f"{number:03}.parquet" if seed % 2 else path / f"{number:03}.parquet"
        place.parent.mkdir(exist_ok=True)
        size = pick.choice([20, 1000])
        match pick.randrange(3):
            case 0:
                frame.to_parquet(place, row_group_size=size)
            case 1:
                table = pa.Table.from_pandas(frame, preserve_index=False)
                pq.write_table(table, place, row_group_size=size, write_page_index=True)
            case 2:
                bloom = {name: True for name in ("u", "s") if name in frame}
                numparq.to_parquet(frame, place, row_group_size=size, max_rows_per_page=10, bloom_filter_options=bloom)
    return base


def queries(end: int, seed: int) -> list:
    pick = random.Random(seed)
    return [
        col("id") == pick.randrange(max(end, 1)),
        col("id") < end // 4,
        col("id") < 0,
        col("u") == pick.randrange(1000),
        col("u") < 300,
        (col("u") < 100) | (col("s") == "n3"),
        (col("u") < 500) & (col("id") > end // 2),
        col("s").is_null(),
        ~col("s").is_null(),
        col("s").isin(["n1", "n2", "absent"]),
        col("s").startswith("n1"),
        *([(col("k") == 1) & (col("u") < 500), (col("k") == 1) | (col("u") < 100)] if seed % 2 else []),
    ]


@pytest.mark.parametrize(
    "seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(60) if seed not in (1, 2))]
)
def test_random_folders(tmp_path, monkeypatch, seed):
    """Files pruned by the table and joined give what each file by itself gives."""
    end = write_random_folder(tmp_path, seed)
    pick, asked_again = random.Random(seed), numparq.Dataset(tmp_path)
    if seed % 4 > 1:
        monkeypatch.setattr(planner, "_MIN_JOINED_CHUNK_BYTES", 0)  # pages of small chunks are located, too
    for expression in queries(end, seed):
        how = {
            "columns": pick.choice([None, ["id", "s"], ["s", "u"]]),
            "filters": expression,
            "dtype_backend": pick.choice(["numpy", "numpy_nullable", "pyarrow"]),
            "include": pick.choice([(), ("file", "row_number"), ("row_group",)]),
        }
        found = numparq.read_parquet(tmp_path, **how)
        pd.testing.assert_frame_equal(asked_again.read(**how), found)
        del how["include"]
        with numparq.Dataset(tmp_path) as dataset:
            count = dataset.count_rows(expression)
            batches = [*dataset.iter_batches(**how)]
        with monkeypatch.context() as patched:
            patched.setattr(unopened_files, "_MIN_FILES", 1 << 40)
            patched.setattr(joined_files, "MAX_JOINED_BYTES", 0)
            patched.setattr(open_files, "open_small_files", lambda paths, names, most: [None] * len(paths))
            included = [name for name in ("file", "row_number", "row_group") if name in found]
            expected = numparq.read_parquet(tmp_path, **how, include=tuple(included))
            with numparq.Dataset(tmp_path) as dataset:
                expected_batches = [*dataset.iter_batches(**how)]
        pd.testing.assert_frame_equal(found, expected)
        assert count == len(expected)
        if expected_batches or batches:
            pd.testing.assert_frame_equal(pd.concat(batches), pd.concat(expected_batches))


def test_file_that_is_gone(folder, tmp_path):
    paths = []
    for number in range(20):
        paths.append(tmp_path / f"{number:02}.parquet")
        paths[-1].write_bytes((folder / f"{number:03}.parquet").read_bytes())
    os.remove(paths[7])
    with pytest.raises(FileNotFoundError, match=r"07\.parquet"):
        numparq.read_parquet([str(path) for path in paths], filters=col("id") == 3)


def test_tables_of_several_queries(tmp_path):
    """A dataset has files of the tables of earlier queries, whose positions are others."""
    for number in range(40):
        (tmp_path / f"k={number % 2}").mkdir(exist_ok=True)
        table = pa.table({"id": np.arange(number * 10, number * 10 + 10), "x": np.full(10, number)})
        pq.write_table(table, tmp_path / f"k={number % 2}" / f"{number:02}.parquet")
    with numparq.Dataset(tmp_path) as dataset:
        assert dataset.read(filters=(col("k") == 1) & (col("id") < 40))["x"].drop_duplicates().tolist() == [1, 3]
        whole = dataset.read()
        assert (whole["id"] // 10 == whole["x"]).all()
        assert sorted(whole["id"]) == [*range(400)]
        pd.testing.assert_frame_equal(dataset.read(filters=col("x") >= 0), whole)


def test_pages_of_joined_files_are_located(tmp_path, monkeypatch):
    """Positions of an offset index count in its own file, wherever that lies among the joined ones."""
    located = []
    locate = index_reader.located_pages
    monkeypatch.setattr(
        index_reader, "located_pages", lambda index, whole: located.append(locate(index, whole)) or located[-1]
    )
    monkeypatch.setattr(planner, "_MIN_JOINED_CHUNK_BYTES", 0)
    for number in range(20):
        frame = pd.DataFrame({"k": np.arange(100), "id": number * 100 + np.arange(100)})
        numparq.to_parquet(frame, tmp_path / f"{number:02}.parquet", max_rows_per_page=10)
    found = numparq.read_parquet(tmp_path, filters=col("k") == 55)
    assert found["id"].tolist() == [number * 100 + 55 for number in range(20)]
    assert len(located) >= 20
    assert None not in located
