"""Files pruned by their own footers and by a `_metadata` file; key look-ups in many files."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import RuntimeFilter, col
from numparq.cli.spark_demo import measure_lookup
from numparq.dataset.discover.files import list_files
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.prune.dataset_filter import DatasetFilter
from numparq.dataset.prune.metadata_file import build_metadata_file_pruner
from numparq.dataset.prune.pruners import StatisticsPruner
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.format.open_file import OpenFile


@pytest.fixture
def folder(tmp_path):
    """Return eight files of two row groups each, partitioned by a key, with a newer `_metadata` file."""
    table = pa.table(
        {
            "n": np.arange(160),
            "s": [f"s{number // 20}" for number in range(160)],
            "k": np.arange(160) // 40,
            "half": pa.array([number if number < 80 else None for number in range(160)]),
        }
    )
    collected = []
    for part in range(8):
        piece, key = table.slice(part * 20, 20), part // 2
        path = tmp_path / f"k={key}" / f"part-{part}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(piece.drop(["k"]), path, row_group_size=10, metadata_collector=collected)
        collected[-1].set_file_path(f"k={key}/part-{part}.parquet")
    pq.write_metadata(table.drop(["k"]).schema, tmp_path / "_metadata", metadata_collector=collected)
    for path in tmp_path.rglob("*.parquet"):
        set_time(path, 1000)
    set_time(tmp_path / "_metadata", 2000)
    return tmp_path


def set_time(path, seconds):
    os.utime(path, (seconds, seconds))


def parts(files):
    return [int(os.path.basename(file.path)[5:-8]) for file in files]


def kept_by_statistics(folder, filters, runtime=()):
    listing = list_files(folder)
    opened = {file.path: OpenFile(file.path) for file in listing.files}
    dataset_filter = DatasetFilter(
        filters, DatasetSchema.from_files(list(opened.values())), DatasetPartitions.from_listing(listing)
    )
    mask = StatisticsPruner(dataset_filter, opened, runtime).keep(listing.files)
    for file in opened.values():
        file.close()
    return [part for part, keep in zip(parts(listing.files), mask.tolist(), strict=True) if keep]


def kept_by_metadata(folder, filters, runtime=(), **listed):
    listing = list_files(folder, **listed)
    files = []

    def opened(requested):
        opened_files = [OpenFile(file.path, filesystem=listing.filesystem) for file in requested]
        files.extend(opened_files)
        return opened_files

    pruner = build_metadata_file_pruner(
        listing,
        listing.files,
        filters,
        DatasetPartitions.from_listing(listing),
        runtime,
        open_files=opened,
        merge_schemas=DatasetSchema.from_files,
    )
    mask = np.ones(len(listing.files), bool) if pruner is None else pruner.keep(listing.files)
    for file in files:
        file.close()
    return [part for part, keep in zip(parts(listing.files), mask.tolist(), strict=True) if keep]


ALL_FILES = list(range(8))
FILTERS = [
    (col("n") == 45, [2]),
    ((col("n") >= 35) & (col("n") < 41), [1, 2]),
    (col("s") == "s7", [7]),
    (col("n") < 0, []),
    ((col("k") == 1) & (col("n") > 50), [2, 3]),
    ((col("k") == 3) | (col("n") == 1), [0, 6, 7]),
    (col("k") == 9, []),
    (col("half").is_null(), [4, 5, 6, 7]),
    (col("half") > 10, [0, 1, 2, 3]),
    (~(col("n") < 100), [5, 6, 7]),
    (col("n") > -1, ALL_FILES),
    (None, ALL_FILES),
]


@pytest.mark.parametrize(("filters", "expected"), FILTERS, ids=repr)
@pytest.mark.parametrize("kept_files", [kept_by_statistics, kept_by_metadata])
def test_files_without_matching_rows_are_pruned(folder, kept_files, filters, expected):
    assert kept_files(folder, filters) == expected


@pytest.mark.parametrize("kept_files", [kept_by_statistics, kept_by_metadata])
def test_arrived_runtime_filters_prune(folder, kept_files):
    runtime_filter = RuntimeFilter("n")
    assert kept_files(folder, col("k") < 2, [runtime_filter]) == [0, 1, 2, 3]
    runtime_filter.arrive([5, 70, 150])
    assert kept_files(folder, col("k") < 2, [runtime_filter]) == [0, 3]
    assert kept_files(folder, None, [RuntimeFilter("k", [3])]) == [6, 7]


def test_metadata_pruning_opens_no_data_file(folder):
    for path in folder.rglob("*.parquet"):
        times = os.stat(path)
        path.write_bytes(bytes(times.st_size))
        os.utime(path, (times.st_atime, times.st_mtime))
    assert kept_by_metadata(folder, col("n") == 45) == [2]


def test_files_missing_from_metadata_are_kept(folder):
    pq.write_table(pa.table({"n": [1]}), folder / "k=0" / "part-8.parquet")
    set_time(folder / "k=0" / "part-8.parquet", 1000)
    assert sorted(kept_by_metadata(folder, col("n") == 45)) == [2, 8]


@pytest.mark.parametrize("seconds", [2000, 2000.5, 3000])
def test_files_not_older_than_metadata_are_kept(folder, seconds):
    set_time(folder / "k=3" / "part-6.parquet", seconds)
    assert kept_by_metadata(folder, col("n") == 45) == [2, 6]


def test_files_that_became_too_short_are_kept(folder):
    path = folder / "k=3" / "part-6.parquet"
    pq.write_table(pa.table({"n": [45]}), path, write_statistics=False, store_schema=False)
    set_time(path, 1000)
    assert kept_by_metadata(folder, col("n") == 45) == [2, 6]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1"])
def test_damaged_metadata_file_prunes_nothing(folder, data):
    (folder / "_metadata").write_bytes(data)
    set_time(folder / "_metadata", 2000)
    assert kept_by_metadata(folder, col("n") == 45) == ALL_FILES


def test_files_of_split_row_group_are_kept(folder):
    """A row group whose columns lie in two files prunes neither."""
    raw = rewrite_metadata(folder, lambda part: f"k={part // 2}/part-{part}.parquet")
    (folder / "_metadata").write_bytes(raw.replace(b"k=3/part-7.parquet", b"k=3/part-6.parquet", 1))
    set_time(folder / "_metadata", 2000)
    assert kept_by_metadata(folder, col("n") == 45) == [2, 6, 7]


def rewrite_metadata(folder, path_of):
    """Rewrite `_metadata` with other paths; return its bytes."""
    collected = []
    for part in range(8):
        collected.append(pq.read_metadata(folder / f"k={part // 2}" / f"part-{part}.parquet"))
        collected[-1].set_file_path(path_of(part))
    for other in collected[1:]:
        collected[0].append_row_groups(other)
    collected[0].write_metadata_file(str(folder / "_metadata"))
    set_time(folder / "_metadata", 2000)
    return (folder / "_metadata").read_bytes()


@pytest.mark.parametrize("path", [b"/=2/part-5.parquet", b"../part-5.parquet_", b"k=2/part-4.parquet"])
def test_metadata_paths_outside_dataset_match_no_file(folder, path):
    data = (folder / "_metadata").read_bytes()
    (folder / "_metadata").write_bytes(data.replace(b"k=2/part-5.parquet", path.ljust(18, b"x")[:18]))
    set_time(folder / "_metadata", 2000)
    kept_files = kept_by_metadata(folder, col("n") == 45)
    assert kept_files == [2, 5]


def test_metadata_paths_are_normalised(folder):
    rewrite_metadata(folder, lambda part: f"./k={part // 2}//x/../part-{part}.parquet")
    assert kept_by_metadata(folder, col("n") == 45) == [2]


def test_metadata_pruning_needs_modification_times(folder):
    fsspec = pytest.importorskip("fsspec")
    local = fsspec.filesystem("file")
    assert kept_by_metadata(str(folder), col("n") == 45, filesystem=local) == [2]
    set_time(folder / "k=3" / "part-6.parquet", 3000)
    assert kept_by_metadata(str(folder), col("n") == 45, filesystem=local) == [2, 6]
    memory = fsspec.filesystem("memory")
    for path in folder.rglob("*"):
        if path.is_file():
            memory.pipe_file(f"/skipping/{path.relative_to(folder)}", path.read_bytes())
    try:
        assert kept_by_metadata("/skipping", col("n") == 45, filesystem=memory) == ALL_FILES
    finally:
        memory.rm("/skipping", recursive=True)


def test_pruning_keeps_exactly_files_with_matches(folder):
    everything = pa.concat_tables(
        pq.read_table(path, partitioning=None).append_column("file", pa.array([path.name] * 20))
        for path in sorted(folder.rglob("*.parquet"))
    ).to_pandas()
    for low in range(0, 160, 13):
        matching = everything[(everything["n"] >= low) & (everything["n"] < low + 9)]
        found = kept_by_metadata(folder, col("n").between(low, low + 8))
        assert found == sorted({int(name[5:-8]) for name in matching["file"]})
    assert numparq.read_parquet(folder / "k=1" / "part-2.parquet", filters=col("n") == 45)["n"].tolist() == [45]


ROWS, FILES = 40_000, 5


@pytest.fixture(scope="module")
def sorted_files(tmp_path_factory):
    path = tmp_path_factory.mktemp("sorted")
    random = np.random.default_rng(7)
    for number in range(FILES):
        frame = pd.DataFrame(
            {
                "key": np.arange(ROWS) + number * ROWS,
                "x": random.random(ROWS),
                "text": [f"text {n}" for n in random.integers(0, 10**9, ROWS)],
                "list": [[number, None]] * ROWS,
            }
        )
        numparq.to_parquet(frame, path / f"{number}.parquet", max_rows_per_page=500, row_group_size=20_000)
    return path


@pytest.mark.parametrize("number", range(FILES))
def test_lookup_reads_only_footers_of_other_files(sorted_files, number):
    key = number * ROWS + 12_345
    filters = col("key") == key
    frame = numparq.read_parquet(sorted_files, filters=filters)
    assert frame["key"].tolist() == [key]
    assert frame["list"][0][0] == number
    rows, num_bytes = measure_lookup(str(sorted_files), filters)
    assert rows == 1
    tails = FILES * (64 << 10)
    with numparq.Dataset(sorted_files) as dataset:
        planned = dataset.plan(None, filters).num_bytes
    assert num_bytes < tails + planned + 50_000  # indexes


def test_lookup_of_absent_key_reads_only_footers(sorted_files):
    rows, num_bytes = measure_lookup(str(sorted_files), col("key") == -1)
    assert rows == 0
    assert num_bytes <= FILES * (64 << 10) + 50_000
