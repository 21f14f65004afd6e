"""Wrong or malformed page indexes, Bloom filters and statistics cost reading: results are those without them."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import InvalidFileError, ParquetFile, col, read_parquet
from numparq.dataset.splits.table import split_table
from support.files.builder import extended_idl
from support.files.forged_metadata import FileParts
from support.files.page_damage import damage_body, pages_of
from support.files.wrong_locations import MORE_LIES, first_left_out, is_unnoticed, replace_locations
from support.filters.reads import assert_frames_equal
from support.io.recorded_reads import RecordingFile
from support.row_selection import arrow_table, page_locations, write_by_pyarrow

COLUMNS = ["i4", "f8", "text", "bool", "list", "words", "struct", "map"]
ROWS = 300


def concat(batches):
    return pd.concat(list(batches), ignore_index=True)


# Each reads some rows of a file, where page indexes help.
READS = {
    "row_range": lambda file: file.read(row_range=(110, 140)),
    "first rows": lambda file: file.read(nrows=20),
    "filter": lambda file: file.read(filters=col("key") == 123),
    "filter of other columns": lambda file: file.read(["list", "text"], filters=col("i4") > 70),
    "filter and nrows": lambda file: file.read(filters=col("key") >= 150, nrows=30),
    "filter of a list": lambda file: file.read(filters=col("list").contains(4)),
    "batches": lambda file: concat(file.iter_batches(batch_rows=40)),
    "batches of a row range": lambda file: concat(file.iter_batches(row_range=(50, 250), batch_rows=64)),
    "filtered batches": lambda file: concat(file.iter_batches(filters=col("key") > 200, batch_rows=50)),
    "batches in little memory": lambda file: concat(file.iter_batches(memory_limit=1 << 20)),
    "explode": lambda file: file.read(["key", "list"], filters=col("key").between(100, 130), explode="list"),
    "skip": lambda file: file.read(row_range=(90, 130), on_error="skip").drop(columns=[]),
    "count": lambda file: pd.DataFrame({"rows": [file.count_rows(col("key") < 77)]}),
    "arrow": lambda file: file.to_arrow(filters=col("key").isin([7, 270])).to_pandas(),
}


def sound_file(**options):
    table = arrow_table(ROWS).select(COLUMNS)
    return write_by_pyarrow(table.add_column(0, "key", pa.array(np.arange(ROWS))), row_group_size=ROWS, **options)


def without_indexes(data):
    parts = FileParts(data)
    for indexes in parts.indexes.values():
        indexes["OffsetIndex"] = indexes["ColumnIndex"] = None
    return parts.data()


def expected_reads(data):
    plain = without_indexes(data)
    return {name: read(ParquetFile(plain)) for name, read in READS.items()}


def check_reads(data, expected, names=READS):
    for name in names:
        assert_frames_equal(READS[name](ParquetFile(data)), expected[name], loose=True)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("lie", MORE_LIES, ids=lambda lie: lie.__name__)
@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0", "use_dictionary": False}], ids=["v1", "v2"])
def test_reads_of_wrong_offset_indexes(options, lie):
    """Each column in turn has a wrong index; whole files equal the file without indexes, in every way to read."""
    rng = np.random.default_rng(3)
    sound = sound_file(**options)
    expected, locations = expected_reads(sound), page_locations(sound)
    names = itertools.cycle(rng.permutation([*READS]).tolist())
    for (group, leaf), right in locations.items():
        for _ in range(2 if len(right) > 2 else 0):
            lying = lie(rng, right.copy())
            if is_unnoticed(lying, right, ROWS):
                continue
            parts = FileParts(sound)
            replace_locations(parts, group, leaf, lying)
            check_reads(parts.data(), expected, [next(names) for _ in range(3)])


def test_offset_index_of_another_column():
    sound = sound_file()
    expected = expected_reads(sound)
    for leaf, other in [(0, 1), (1, 0), (3, 0), (5, 6), (6, 5)]:
        parts = FileParts(sound)
        parts.indexes[0, leaf] = parts.indexes[0, other]
        check_reads(parts.data(), expected)


def test_indexes_of_random_bytes():
    """Malformed indexes, and those with random bytes, are ignored; a column index that misleads is not tested here."""
    rng = np.random.default_rng(4)
    sound = sound_file()
    expected = expected_reads(sound)
    names = itertools.cycle(READS)
    for number in range(30):
        parts = FileParts(sound)
        data = bytearray(parts.data())
        chunk = parts.footer.row_groups[0].columns[number % len(parts.leaves)]
        start, length = chunk.offset_index_offset, chunk.offset_index_length
        if number % 2:
            start, length = chunk.column_index_offset, chunk.column_index_length
        data[start : start + min(length, 3)] = rng.bytes(min(length, 3))
        check_reads(bytes(data), expected, [next(names) for _ in range(3)])


def test_index_of_array_elements():
    """ClickHouse before 25.8 counts the elements of arrays; its name is not needed to notice it."""
    lists = [[row] if row % 8 == 0 else [] for row in range(64)]
    table = pa.table({"id": np.arange(64), "a": lists})
    sound = write_by_pyarrow(table, write_batch_size=8, data_page_size=8, row_group_size=64, use_dictionary=False)
    parts = FileParts(sound)
    leaf = len(parts.leaves) - 1
    locations = page_locations(sound)[0, leaf]
    locations[:, 2] //= 8
    replace_locations(parts, 0, leaf, locations)
    data = parts.data()
    for read, expected in (
        (lambda file: file.read(["a"], col("id") == 40), lists[40:41]),
        (lambda file: file.read(["a"], col("a").contains(40)), lists[40:41]),
        (lambda file: file.read(["a"], row_range=(30, 50)), lists[30:50]),
        (lambda file: file.read(["a"], nrows=10), lists[:10]),
        (lambda file: concat(file.iter_batches(["a"], batch_rows=7)), lists),
        (lambda file: file.read(["a"], col("id") > 30, nrows=3, on_error="skip"), lists[31:34]),
    ):
        assert [list(value) for value in read(ParquetFile(data))["a"]] == expected
    parts.footer.created_by = "ClickHouse v25.3.2.39"
    clickhouse = ParquetFile(parts.data())
    plan = clickhouse.plan(["a"], col("id") == 40)
    assert [chunk.is_indexed for group in plan.left for chunk in group.chunks] == [False, True]


def test_datasets_of_files_with_wrong_indexes(tmp_path):
    """All files of a read are read again at once; splits, and threads, too."""
    sound = sound_file()
    parts = FileParts(sound)
    lying = page_locations(sound)[0, 0]
    lying[1:, 2] += np.arange(1, len(lying))
    replace_locations(parts, 0, 0, lying)
    for number in range(5):
        (tmp_path / f"{number}.parquet").write_bytes(parts.data() if number % 2 else sound)
    dataset, filters = numparq.Dataset(tmp_path), col("key").between(100, 120)
    got = dataset.read(filters=filters)
    (tmp_path / "plain").mkdir()
    for number in range(5):
        (tmp_path / "plain" / f"{number}.parquet").write_bytes(without_indexes(sound))
    plain = numparq.Dataset(tmp_path / "plain")
    assert_frames_equal(got, plain.read(filters=filters), loose=True)
    assert dataset.count_rows(filters) == plain.count_rows(filters) == 105
    assert_frames_equal(
        concat(dataset.iter_batches(filters=filters, batch_rows=9)),
        concat(plain.iter_batches(filters=filters, batch_rows=9)),
        loose=True,
    )


def malformed(name, parts, rng):
    """Make one kind of metadata malformed in all chunks."""
    huge = [-(2**63), -1, 0, 2**31 - 1, 2**62]
    idl = extended_idl()
    for _, _, chunk in parts.chunks():
        about = chunk.meta_data
        number = int(rng.choice(huge))
        if name == "statistics" and about.statistics is not None:
            for field in rng.permutation(["min_value", "max_value", "min", "max"])[:2]:
                setattr(about.statistics, field, rng.bytes(int(rng.choice([0, 1, 3, 5, 9, 17]))))
            about.statistics.null_count = int(rng.choice([-(2**63), -1, 2**62]))
            about.statistics.distinct_count = number
        elif name == "size statistics":
            about.size_statistics = idl.SizeStatistics(
                unencoded_byte_array_data_bytes=int(rng.choice([2**31 - 1, 2**63 - 1])),
                repetition_level_histogram=[number] * 3,
                definition_level_histogram=[-1],
            )
        elif name == "encoding_stats":
            about.encoding_stats = [idl.PageEncodingStats(page_type=9, encoding=99, count=number % 2**31)]
        elif name == "Bloom filter header" and about.bloom_filter_offset:
            start = about.bloom_filter_offset
            parts.body[start : start + 6] = rng.bytes(6)
        elif name == "place of a Bloom filter":
            about.bloom_filter_offset, about.bloom_filter_length = number, int(rng.choice([-1, 0, 1, 2**31 - 1]))
    for row_group in parts.footer.row_groups:
        if name == "sorting_columns":
            row_group.sorting_columns = [
                idl.SortingColumn(column_idx=column, descending=False, nulls_first=True)
                for column in (-1, 99, 2**31 - 1)
            ]


@pytest.mark.parametrize(
    "name",
    [
        "statistics",
        "size statistics",
        "encoding_stats",
        "Bloom filter header",
        "place of a Bloom filter",
        "sorting_columns",
    ],
)
def test_reads_of_malformed_metadata(name):
    """What only helps is no reason to refuse: results are those of a file without it."""
    rng = np.random.default_rng(7)
    table = arrow_table(ROWS).select(COLUMNS).add_column(0, "key", pa.array(np.arange(ROWS)))
    sound = numparq.to_parquet(
        table, row_group_size=ROWS, max_rows_per_page=40, bloom_filter_options=True, sorting_columns=["key"]
    )
    expected, names = expected_reads(sound), itertools.cycle(READS)
    for _ in range(4):
        parts = FileParts(sound)
        malformed(name, parts, rng)
        data = parts.data()
        check_reads(data, expected, [next(names) for _ in range(4)])
        file = ParquetFile(data)
        for column in ("key", "f8", "text"):
            file.statistics(column)
        numparq.verify(data)


@pytest.mark.parametrize("total", [2**31 - 1, 2**62, 2**63 - 1])
def test_impossible_sizes_of_strings_are_no_memory(total):
    """300 strings of a small file have no two gigabytes: limits count what they may have at most."""
    frame = pd.DataFrame({"a": [f"text {row}" for row in range(300)], "l": [[f"w{row}"] for row in range(300)]})
    parts = FileParts(numparq.to_parquet(frame))
    for _, _, chunk in parts.chunks():
        chunk.meta_data.size_statistics = extended_idl().SizeStatistics(unencoded_byte_array_data_bytes=total)
    file = ParquetFile(parts.data())
    assert file.read(memory_limit=8 << 20)["a"].tolist() == frame["a"].tolist()
    assert sum(map(len, file.iter_batches(memory_limit=8 << 20))) == 300
    assert file.count_rows("a = 'text 7'", memory_limit=8 << 20) == 1


def wrong_in_one_place(sound):
    """Move the first row of the third page of `key`."""
    parts, lying = FileParts(sound), page_locations(sound)[0, 0]
    lying[2, 2] += 1
    replace_locations(parts, 0, 0, lying)
    return parts.data(), int(lying[2, 2]) - 1


def test_pruned_rows_come_back():
    """The first row of a page is another than the index says: planning has pruned it, and planning is done again."""
    data, first = wrong_in_one_place(sound_file())
    for _ in range(2):
        assert read_parquet(data, filters=col("key") == first)["key"].tolist() == [first]
        assert read_parquet(data, filters=[("key", "==", first)], nrows=1)["key"].tolist() == [first]
    assert ParquetFile(data).count_rows(col("key") == first) == 1


def test_wrong_indexes_are_read_once():
    """A file that was read without its indexes is read so from the beginning afterwards."""
    data, first = wrong_in_one_place(sound_file())
    source = RecordingFile(data)
    file = ParquetFile(source)
    sizes = []
    for _ in range(3):
        before = len(source.ranges)
        assert file.read(["key"], col("key") == first)["key"].tolist() == [first]
        sizes.append(len(source.ranges) - before)
    assert sizes[1] == sizes[2] <= sizes[0]


def test_damage_does_not_discredit_indexes():
    """A read that fails without indexes, too, leaves them in use."""
    sound = sound_file(write_page_checksum=True)
    bad = damage_body(sound, [page for page in pages_of(sound, 0, "key") if not page.is_dictionary][3])
    file = ParquetFile(bad)
    first = int(page_locations(sound)[0, 0][3, 2])
    with pytest.raises(InvalidFileError) as caught:
        file.read(["key"], col("key") == first)
    assert (caught.value.where["row_group"], caught.value.where["column"]) == (0, "key")
    plan = file.plan(["key"], col("key") == first - 1)
    assert all(chunk.is_indexed for group in plan.left for chunk in group.chunks)
    assert file.read(["key"], col("key") == first - 1)["key"].tolist() == [first - 1]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("lie", MORE_LIES, ids=lambda lie: lie.__name__)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_damaged_pages_of_wrong_offset_indexes(version, lie):
    """`on_error="skip"` keeps only right rows, and all that a file without an index would keep."""
    rng = np.random.default_rng(6)
    sound = sound_file(data_page_version=version, write_page_checksum=True)
    full, locations = read_parquet(sound, include=["row_number"]), page_locations(sound)
    with ParquetFile(sound) as file:
        leaves = [file.schema.leaf(index) for index in range(file.schema.num_leaves)]
    for (group, leaf), right in locations.items():
        if len(right) < 3:
            continue
        pages = [page for page in pages_of(sound, 0, leaves[leaf].name) if not page.is_dictionary]
        bad = damage_body(sound, pages[int(rng.integers(0, len(pages)))])
        parts = FileParts(bad)
        lying = lie(rng, right.copy())
        if is_unnoticed(lying, right, ROWS):
            continue
        replace_locations(parts, group, leaf, lying)
        columns = [leaves[leaf].path[0]]
        got, least = (
            read_parquet(data, columns=columns, include=["row_number"], on_error="skip")
            for data in (parts.data(), without_indexes(bad))
        )
        kept = full[got.columns].iloc[got["row_number"]].reset_index(drop=True)
        assert_frames_equal(got.reset_index(drop=True), kept, loose=True)
        if lie is not first_left_out:  # the page that the index lacks then is lost with a damaged one
            assert (columns[0] in got) * len(got) >= (columns[0] in least) * len(least)


def test_damaged_list_of_clickhouse():
    """A page whose elements are as many as its rows does not stand for other rows."""
    lists = [[] if row < 24 else [row] for row in range(64)]
    options = {"write_batch_size": 8, "data_page_size": 1, "row_group_size": 64, "use_dictionary": False}
    sound = write_by_pyarrow(pa.table({"a": lists}), **options, write_page_checksum=True)
    parts = FileParts(damage_body(sound, pages_of(sound, 0, "a.list.element")[3]))
    locations = page_locations(sound)[0, 0]
    locations[:, 2] = np.maximum(locations[:, 2] - 24, 0)
    replace_locations(parts, 0, 0, locations)
    parts.footer.created_by = "ClickHouse v25.3.2.39"
    got = read_parquet(parts.data(), include=["row_number"], on_error="skip")
    assert len(got) > 40
    assert [list(value) for value in got["a"]] == [lists[row] for row in got["row_number"]]


@pytest.mark.parametrize("split_bytes", [100, 1 << 20])
def test_filtered_splits_with_a_wrong_index_read_more(tmp_path, split_bytes):
    """Another process planned them by that index; each split has the rows between it and the next."""
    data, first = wrong_in_one_place(sound_file())
    path = tmp_path / "wrong.parquet"
    path.write_bytes(data)
    for filters, keys in ((col("key") == first, [first]), (col("key") >= first - 9, [*range(first - 9, ROWS)])):
        table = split_table(path, ["key"], filters, split_bytes=split_bytes)
        assert [key for split in table.splits for key in table.frame(split)["key"].tolist()] == keys
        assert sum(table.reader.count(split) for split in table.splits) == len(keys)
    whole = split_table(path, ["key"], row_range=(first, first + 1))
    assert [table.frame(split)["key"].tolist() for table in [whole] for split in table.splits] == [[first]]
