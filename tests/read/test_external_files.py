"""External column chunks (``file_path``) and files with metadata only."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from numparq import InvalidFileError, ParquetFile, UnsupportedError, read_parquet
from numparq.io import multi_file_source
from support.files.builder import (
    BYTE_ARRAY,
    INT64,
    FileColumn,
    build_file,
    data_page,
    encode_plain,
    parse_file,
    with_footer,
)
from support.files.external_files import numbered_frame, write_parts

NUMBERS = [3, 1, 2**62, -5]


def assert_same(got: pd.DataFrame, expected: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(
        got.drop(columns="l"), expected.drop(columns="l"), check_dtype=False, check_categorical=False
    )
    assert [list(item) for item in got["l"]] == expected["l"].tolist()


@pytest.fixture
def parts(tmp_path):
    pytest.importorskip("pyarrow")
    return tmp_path, write_parts(tmp_path, ["part.0", "p=1/part.1", "p=2/x/part.2"], row_group_size=4)


@pytest.mark.parametrize("options", [{}, {"threads": 1}, {"threads": 3}, {"categories": ["s", "c"]}], ids=str)
def test_external_column_chunks(parts, options):
    folder, expected = parts
    assert_same(read_parquet(folder / "_metadata", external_files=True, **options), expected)


def test_external_files_are_off_by_default(parts):
    folder, _ = parts
    with pytest.raises(UnsupportedError, match=r"another file, 'part\.0'; use external_files=True.*column 'a'"):
        read_parquet(folder / "_metadata")
    with ParquetFile(folder / "_metadata") as opened:
        assert opened.num_rows == 30
        assert opened.num_row_groups == 9
        assert opened.schema.columns == list("ascfl")
        assert opened.metadata.row_groups[8].columns[2].file_path == "p=2/x/part.2"
        assert opened.read(row_groups=[]).shape == (0, 5)
        assert opened.read(nrows=0)["s"].dtype == "str"


def test_row_and_column_selection(parts):
    folder, expected = parts
    with ParquetFile(folder / "_metadata", external_files=True) as opened:
        got = opened.read(["f", "a"], row_range=(8, 23), include=["file", "row_group", "row_number"])
        pd.testing.assert_frame_equal(got[["f", "a"]], expected[["f", "a"]][8:23].reset_index(drop=True))
        assert got["row_number"].tolist() == list(range(8, 23))
        assert set(got["file"]) == {str(folder / "_metadata")}
        assert len(opened._file.source._sources()) == 3
        assert_same(opened.read(row_groups=[8, 0]), expected.iloc[[28, 29, 0, 1, 2, 3]].reset_index(drop=True))
        with ThreadPoolExecutor(4) as pool:
            for frame in pool.map(lambda _: opened.read(), range(8)):
                assert_same(frame, expected)
    assert not opened._file.source._sources()


def test_open_sibling_files_are_bounded(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(multi_file_source, "MAX_OPEN_SIBLINGS", 3)
    expected = write_parts(tmp_path, [f"part.{number}" for number in range(12)])
    for threads in (1, 3):
        with ParquetFile(tmp_path / "_metadata", external_files=True) as opened:
            assert_same(opened.read(threads=threads), expected)
            assert len(opened._file.source._sources()) <= 3 + threads


def test_external_files_need_a_named_file(parts):
    folder, _ = parts
    data = (folder / "_metadata").read_bytes()
    with pytest.raises(UnsupportedError, match="needs the path of a local file"):
        read_parquet(data, external_files=True)
    with (
        open(folder / "_metadata", "rb") as opened,
        pytest.raises(UnsupportedError, match="needs the path of a local file"),
    ):
        read_parquet(opened, external_files=True)


@pytest.mark.parametrize("writer", ["metadata_collector", "write_to_dataset"])
def test_pyarrow_metadata_files(tmp_path, writer):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    tables = [pa.Table.from_pandas(numbered_frame(10, 10 * number), preserve_index=False) for number in range(3)]
    collector: list = []
    if writer == "write_to_dataset":
        for table in tables:
            pq.write_to_dataset(table, tmp_path, metadata_collector=collector)
    else:
        for number, table in enumerate(tables):
            pq.write_table(table, tmp_path / f"part-{number}", metadata_collector=collector)
            collector[-1].set_file_path(f"part-{number}")
    pq.write_metadata(tables[0].schema, tmp_path / "_metadata", metadata_collector=collector)
    pq.write_metadata(tables[0].schema, tmp_path / "_common_metadata")
    got = read_parquet(tmp_path / "_metadata", external_files=True)
    assert_same(got, pd.concat([numbered_frame(10, 10 * number) for number in range(3)], ignore_index=True))
    assert got["c"].dtype == "category"
    got = read_parquet(tmp_path / "_common_metadata")
    assert len(got) == 0
    assert got.dtypes.drop("c").to_dict() == numbered_frame(1).dtypes.drop("c").to_dict()
    assert ParquetFile(tmp_path / "_common_metadata").num_rows == 0


@pytest.mark.parametrize("partition_on", [[], ["s"]])
def test_fastparquet_metadata_files(tmp_path, partition_on):
    fastparquet = pytest.importorskip("fastparquet")
    data = numbered_frame(20)[["a", "s", "f"]]
    fastparquet.write(
        str(tmp_path / "set"), data, file_scheme="hive", row_group_offsets=[0, 5, 12], partition_on=partition_on
    )
    got = read_parquet(tmp_path / "set" / "_metadata", external_files=True)
    expected = data.drop(columns=partition_on)
    pd.testing.assert_frame_equal(got.sort_values("a", ignore_index=True), expected)
    empty = read_parquet(tmp_path / "set" / "_common_metadata")
    pd.testing.assert_frame_equal(empty, expected[:0], check_index_type=False)


def write_two_columns(folder, change) -> None:
    """Write a file with columns a and b, and its copy "other" beside it; `change` edits the first file's footer."""
    texts = [b"x", b"", b"zz", b"y"]
    columns = [
        FileColumn("a", INT64, [[data_page(4, encode_plain(INT64, NUMBERS))]]),
        FileColumn("b", BYTE_ARRAY, [[data_page(4, encode_plain(BYTE_ARRAY, texts))]]),
    ]
    file = build_file([4], columns)
    (folder / "other").write_bytes(file.stored())
    file.chunks[0, 0] = [data_page(4, encode_plain(INT64, [1, 2, 3, 4]))]
    file.chunks[0, 1] = [data_page(4, encode_plain(BYTE_ARRAY, [b"own", b"", b"", b"y"]))]  # as long as in the copy
    (folder / "file").write_bytes(file.stored(lambda footer: change(*footer.row_groups[0].columns)))


def read_both(folder, **options):
    got = read_parquet(folder / "file", external_files=True, **options)
    return got["a"].tolist(), got["b"].tolist()


def test_row_group_in_two_files(tmp_path):
    def change(a, b):
        b.file_path = "other"

    write_two_columns(tmp_path, change)
    assert read_both(tmp_path) == ([1, 2, 3, 4], [b"x", b"", b"zz", b"y"])
    # Does not open the sibling file.
    assert read_parquet(tmp_path / "file", columns=["a"])["a"].tolist() == [1, 2, 3, 4]
    with pytest.raises(UnsupportedError, match="external_files=True"):
        read_parquet(tmp_path / "file")

    def change(a, b):
        a.file_path = "other"

    write_two_columns(tmp_path, change)
    assert read_both(tmp_path) == (NUMBERS, [b"own", b"", b"", b"y"])


def test_empty_path_is_the_file_itself(tmp_path):
    def change(a, b):
        a.file_path = ""

    write_two_columns(tmp_path, change)
    assert read_parquet(tmp_path / "file")["a"].tolist() == [1, 2, 3, 4]
    assert read_both(tmp_path)[0] == [1, 2, 3, 4]


@pytest.mark.parametrize("offset", [-1, 0, 3, 10**6, 2**44, 2**45 + 4, 2**62, 2**63 - 1])
def test_offsets_beyond_the_sibling_file(tmp_path, offset):
    def change(a, b):
        a.file_path, a.meta_data.data_page_offset = "other", offset

    write_two_columns(tmp_path, change)
    with pytest.raises(InvalidFileError, match=r"lies outside.*column 'a'"):
        read_both(tmp_path)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (-1, "lies outside"),
        *((size, "number of values does not match") for size in (10**6, 2**44, 2**63 - 1)),  # the next column's pages
    ],
)
def test_sizes_beyond_the_sibling_file(tmp_path, size, message):
    def change(a, b):
        a.file_path, a.meta_data.total_compressed_size = "other", size

    write_two_columns(tmp_path, change)
    with pytest.raises(InvalidFileError, match=rf"{message}.*column 'a'"):
        read_both(tmp_path)


def test_bounds_are_those_of_the_sibling_file(tmp_path):
    """The file that stores the chunk counts, not the one that names it."""

    def change(a, b):
        a.file_path, a.meta_data.data_page_offset = "long", a.meta_data.data_page_offset + 1000

    write_two_columns(tmp_path, change)
    (tmp_path / "long").write_bytes(bytes(1000) + (tmp_path / "other").read_bytes())
    assert read_both(tmp_path)[0] == NUMBERS
    (tmp_path / "long").write_bytes(bytes(1000))
    with pytest.raises(InvalidFileError, match="lies outside"):
        read_both(tmp_path)


def test_damage_names_the_sibling_file(tmp_path):
    def change(a, b):
        b.file_path = "other"

    write_two_columns(tmp_path, change)
    data = bytearray((tmp_path / "other").read_bytes())
    place = data.index(b"x")
    data[place - 4] = 200
    (tmp_path / "other").write_bytes(data)
    with pytest.raises(InvalidFileError, match=r"file '.*file', row group 0, column 'b', page 0, chunk file 'other'"):
        read_both(tmp_path)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../secret", "x/../../secret", "C:\\x", "link", "a\\..\\secret", "pipe", "", "\0", b"\xff"]
)
def test_hostile_paths_are_refused(tmp_path, path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs POSIX")
    folder = tmp_path / "data"
    folder.mkdir()

    def change(a, b):
        a.file_path = path

    write_two_columns(folder, change)
    (folder / "other").rename(tmp_path / "secret")
    (folder / "link").symlink_to("../secret")
    os.mkfifo(folder / "pipe")
    if path == "":
        assert read_both(folder)[0] == [1, 2, 3, 4]
        return
    with pytest.raises(InvalidFileError, match=r"refers to sibling file .*row group 0, column 'a'"):
        read_both(folder)


@pytest.mark.parametrize("path", ["s3://bucket/key", "file:///etc/passwd", "http://localhost:1/x"])
def test_urls_are_not_opened(tmp_path, path):
    def change(a, b):
        a.file_path = path

    write_two_columns(tmp_path, change)
    with pytest.raises(UnsupportedError, match="is a URL"):
        read_both(tmp_path)


def test_missing_file_paths(tmp_path):
    """Footers merged without file paths: every chunk lies outside of the file."""
    pytest.importorskip("pyarrow")
    write_parts(tmp_path, ["part.0"])
    file = parse_file((tmp_path / "part.0").read_bytes())
    (tmp_path / "_metadata").write_bytes(with_footer(b"PAR1", file.footer))
    for external_files in (False, True):
        with pytest.raises(InvalidFileError, match="lies outside of the file's data"):
            read_parquet(tmp_path / "_metadata", external_files=external_files)


def test_missing_sibling_file_loses_only_its_rows(parts):
    folder, expected = parts
    (folder / "p=1" / "part.1").unlink()
    with pytest.raises(InvalidFileError, match=r"'p=1/part\.1', which cannot be opened.*row group 3"):
        read_parquet(folder / "_metadata", external_files=True)
    got = read_parquet(folder / "_metadata", external_files=True, on_error="skip")
    assert_same(got.reset_index(drop=True), expected.drop(range(10, 20)).reset_index(drop=True))
    assert {lost.row_group for lost in got.attrs["numparq.lost"]} == {3, 4, 5}
