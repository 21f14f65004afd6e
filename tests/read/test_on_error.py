"""``on_error="skip"``: the rows and columns that remain after each kind of damage, and the reported losses."""

from __future__ import annotations

import gc
import io
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.column.read import page_sources
from support.damaged_reads import CRC, GROUP, LEAVES, PAGE, ROWS, assert_only_lost, read_skipping_damage, written_file
from support.files.page_damage import (
    damage_body,
    damage_header,
    data_pages,
    dictionary_page,
    edit_footer,
    edit_header,
    flip_bytes,
    pages_of,
)


@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("options", [{}, {"row_range": (350, 900)}, {"row_groups": [2, 0]}, {"nrows": 0}])
def test_undamaged_file_loses_nothing(backend: str, options: dict) -> None:
    data = written_file()
    options = {**options, "dtype_backend": None if backend == "numpy" else backend}
    frame, lost = read_skipping_damage(data, **options)
    assert lost == []
    pd.testing.assert_frame_equal(frame, numparq.read_parquet(data, **options))


def test_losses_are_added_to_attrs() -> None:
    frame = pd.DataFrame({"a": [1, 2]})
    frame.attrs = {"made by": "us"}
    data = numparq.to_parquet(frame)
    assert numparq.read_parquet(data, on_error="skip").attrs == {"made by": "us", "numparq.lost": []}
    assert "numparq.lost" not in numparq.read_parquet(data).attrs
    with numparq.ParquetFile(data) as file:
        assert file.read(on_error="skip").attrs["numparq.lost"] == []
        assert "numparq.lost" not in file.read().attrs


def test_invalid_on_error() -> None:
    with pytest.raises(ValueError, match="on_error must be 'raise' or 'skip', not 'ignore'"):
        numparq.read_parquet(written_file(), on_error="ignore")


def test_conformance_files_lose_nothing(parquet_testing) -> None:
    num_read = 0
    for path in sorted((parquet_testing / "data").glob("*.parquet")):
        if path.name == "large_string_map.brotli.parquet":
            continue  # two strings of a gigabyte each
        try:
            expected = numparq.read_parquet(path)
        except numparq.ParquetError:
            continue
        frame = numparq.read_parquet(path, on_error="skip")
        assert frame.attrs.pop("numparq.lost") == [], path.name
        pd.testing.assert_frame_equal(frame, expected, obj=path.name)
        num_read += 1
    assert num_read >= 40


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("damage", ["body", "header", "dictionary", "schema"])
def test_frame_with_losses_is_freed_at_once(damage: str) -> None:
    """The errors behind the losses do not keep it alive until the garbage collector runs."""
    data = written_file()
    damaged = {
        "body": lambda: damage_body(data, data_pages(data, 1, "list.list.element")[2]),
        "header": lambda: damage_header(data, data_pages(data, 1, "int")[1]),
        "dictionary": lambda: damage_body(data, dictionary_page(data, 1, "few")),
        "schema": lambda: edit_footer(
            data, lambda footer: setattr(footer.row_groups[1].columns[0].meta_data, "codec", 99)
        ),
    }[damage]()
    numparq.read_parquet(damaged, on_error="skip")
    gc.collect()
    gc.disable()
    try:
        frame = numparq.read_parquet(damaged, on_error="skip")
        assert frame.attrs["numparq.lost"]
        reference = weakref.ref(frame)
        del frame
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("leaf", LEAVES)
def test_damaged_page_loses_its_rows(leaf: str, index: bool, version: str) -> None:
    data = written_file(data_page_version=version, write_page_index=index)
    repeated = "." in leaf and not leaf.startswith("struct")
    page = data_pages(data, 1, leaf)[2]
    damaged = damage_body(data, page)
    unknown = repeated and not index and version == "1.0"  # the page's row count is unknown
    losses = assert_only_lost(damaged, data, [(1, leaf, (599, 800) if unknown else (600, 700))])
    assert losses[0].reason == CRC


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("leaf", ["text", "list.list.element"])
def test_rows_of_windows_before_a_damaged_page_come_once(monkeypatch, leaf: str, index: bool) -> None:
    monkeypatch.setattr(page_sources, "WINDOW_BYTES", 200)
    data = written_file(write_page_index=index, data_page_version="2.0")
    damaged = damage_body(data, data_pages(data, 1, leaf)[2])
    assert_only_lost(damaged, data, [(1, leaf, (600, 700))])


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("leaf", LEAVES)
def test_damaged_page_header_loses_its_page_or_the_rest_of_the_chunk(leaf: str, index: bool) -> None:
    data = written_file(write_page_index=index)
    damaged = damage_header(data, data_pages(data, 1, leaf)[1])
    repeated = "." in leaf and not leaf.startswith("struct")
    lost = (500, 600) if index else (499, 800) if repeated else (500, 800)
    losses = assert_only_lost(damaged, data, [(1, leaf, lost)])
    assert "wrong type" in losses[0].reason


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("place", [1, 3])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("leaf", LEAVES)
def test_unknown_page_type_loses_the_rest_of_the_chunk(leaf: str, version: str, place: int) -> None:
    """Readers skip pages of unknown types; here that would shift the rows of all later pages."""
    data = written_file(write_page_index=False, data_page_version=version)
    pages = data_pages(data, 1, leaf)
    damaged = edit_header(data, pages[place], lambda header: setattr(header, "type", 9))
    repeated = "." in leaf and not leaf.startswith("struct") and version == "1.0"
    lost = (GROUP + place * PAGE - repeated, 2 * GROUP)
    for bytes_of_file in (damaged, damage_header(damaged, pages[-1])):
        frame, losses = read_skipping_damage(bytes_of_file)
        assert [item[1:4] for item in losses] == [(1, leaf, lost)]
        pd.testing.assert_frame_equal(frame, numparq.read_parquet(data).drop(index=range(*lost)))
        frame, losses = read_skipping_damage(bytes_of_file, row_range=(710, 790), columns=[leaf.split(".")[0]])
        assert [item[1:4] for item in losses] == [(1, leaf, (710, 790))]
        assert not frame.size


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_other_backends(backend: str) -> None:
    data = written_file()
    for leaf in LEAVES:
        assert_only_lost(
            damage_body(data, data_pages(data, 2, leaf)[0]), data, [(2, leaf, (800, 900))], dtype_backend=backend
        )


def test_damage_in_several_pages() -> None:
    data = damaged = written_file()
    for row_group, leaf, page in ((0, "int", 1), (0, "int", 2), (0, "text", 3), (2, "list.list.element", 0)):
        damaged = damage_body(damaged, data_pages(data, row_group, leaf)[page])
    damaged = damage_header(damaged, data_pages(data, 2, "flag")[3])
    assert_only_lost(
        damaged,
        data,
        [
            (0, "int", (100, 300)),
            (0, "text", (300, 400)),
            (2, "flag", (1100, 1200)),
            (2, "list.list.element", (800, 900)),
        ],
    )


def test_one_page_of_a_chunk_remains() -> None:
    data = damaged = written_file()
    for page in data_pages(data, 1, "struct.y")[:3]:
        damaged = damage_body(damaged, page)
    assert_only_lost(damaged, data, [(1, "struct.y", (400, 700))])


@pytest.mark.parametrize("kind", ["int", "text", "few", "list.list.element", "struct.y"])
def test_losses_within_selected_rows(kind: str) -> None:
    data = written_file()
    damaged = damage_body(data, data_pages(data, 1, kind)[2])
    assert_only_lost(damaged, data, [(1, kind, (650, 700))], row_range=(650, 1000))
    assert_only_lost(damaged, data, [(1, kind, (600, 620))], row_range=(130, 620))
    assert_only_lost(damaged, data, [(1, kind, (600, 700))], row_groups=[2, 1, 0])
    name = kind.split(".")[0]
    frame, lost = read_skipping_damage(damaged, row_range=(0, 600))
    if name in ("list", "struct"):  # the levels of a row group are read as a whole
        assert lost == []
    else:
        assert (len(frame), lost) == (600, [])
    assert len(frame) == 600


def test_damage_in_unprojected_columns_loses_nothing() -> None:
    data = written_file()
    damaged = damage_body(data, data_pages(data, 1, "int")[2])
    frame, lost = read_skipping_damage(damaged, columns=["text", "list"])
    assert (len(frame), lost) == (ROWS, [])


def test_zeroed_page_without_checksum_is_detected() -> None:
    frame = pd.DataFrame({"a": [f"text {n % 50}" for n in range(1000)], "b": np.arange(1000)})
    for compression in ("snappy", "gzip", "zstd", "brotli", "lz4"):
        data = numparq.to_parquet(
            frame, compression=compression, write_page_checksum=False, use_dictionary=False, max_rows_per_page=250
        )
        page = data_pages(data, 0, "a")[1]
        damaged = data[: page.body] + bytes(page.end - page.body) + data[page.end :]
        assert_only_lost(damaged, data, [(0, "a", (250, 500))])


def test_invalid_utf8_loses_its_page() -> None:
    frame = pd.DataFrame({"a": [f"text {n}" for n in range(1000)]})
    data = numparq.to_parquet(
        frame, compression=None, write_page_checksum=False, use_dictionary=False, max_rows_per_page=250
    )
    page = data_pages(data, 0, "a")[1]
    losses = assert_only_lost(flip_bytes(data, data.index(b"text", page.body), by=0x80), data, [(0, "a", (250, 500))])
    assert "UTF-8" in losses[0].reason


def test_verify_crc_false_ignores_checksums() -> None:
    frame = pd.DataFrame({"a": np.arange(1000)})
    data = numparq.to_parquet(frame, compression=None, use_dictionary=False, column_encoding="PLAIN")
    damaged = damage_body(data, data_pages(data, 0, "a")[0])
    got, lost = read_skipping_damage(damaged, verify_crc=False)
    assert lost == []
    assert len(got) == 1000


def file_with_dictionary_fallback(**options) -> tuple[bytes, pd.DataFrame]:
    """Return a pyarrow file whose columns fall back from dictionary to PLAIN pages, and its frame."""
    rows = 4000
    frame = pd.DataFrame({"n": np.arange(rows), "t": [f"{'a' if n < 1000 else n} text" for n in range(rows)]})
    out = io.BytesIO()
    pq.write_table(
        pa.Table.from_pandas(frame),
        out,
        **{
            "dictionary_pagesize_limit": 4000,
            "write_batch_size": 100,
            "data_page_size": 1000,
            "write_page_checksum": True,
            "write_page_index": True,
            **options,
        },
    )
    return out.getvalue(), frame


@pytest.mark.parametrize("categories", [None, ["t"]])
@pytest.mark.parametrize("column", ["n", "t"])
def test_plain_pages_survive_dictionary_damage(column: str, categories: list | None) -> None:
    data, _ = file_with_dictionary_fallback()
    pages = data_pages(data, 0, column)
    coded = [page for page in pages if page.header.data_page_header.encoding == 8]
    assert 0 < len(coded) < len(pages), "the column has no PLAIN pages"
    first_plain = coded[-1].first_value + coded[-1].num_values
    damaged = damage_body(data, dictionary_page(data, 0, column))
    if categories is None:
        assert_only_lost(damaged, data, [(0, column, (0, first_plain))])
    else:
        frame, lost = read_skipping_damage(damaged, categories=categories)
        assert [item.rows for item in lost] == [(0, first_plain)]
        expected = numparq.read_parquet(data)["t"][first_plain:]
        assert frame["t"].astype("str").tolist() == expected.tolist()


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("column", ["n", "t"])
def test_damaged_dictionary_of_unselected_pages_loses_nothing(column: str, index: bool) -> None:
    data, frame = file_with_dictionary_fallback(write_page_index=index)
    damaged = damage_body(data, dictionary_page(data, 0, column))
    found, lost = read_skipping_damage(damaged, row_range=(3000, 3500))
    assert lost == []
    assert found[column].tolist() == frame[column][3000:3500].tolist()


@pytest.mark.parametrize("column", ["n", "t"])
def test_damaged_page_header_outside_the_selected_rows_loses_nothing(column: str) -> None:
    data, frame = file_with_dictionary_fallback(use_dictionary=False)
    damaged = damage_header(data, data_pages(data, 0, column)[0])
    found, lost = read_skipping_damage(damaged, row_range=(3000, 3500))
    assert lost == []
    assert found[column].tolist() == frame[column][3000:3500].tolist()


def test_empty_page_of_a_list_loses_no_row() -> None:
    lists = [[n, None] for n in range(100)]
    out = io.BytesIO()
    options = {"write_batch_size": 17, "data_page_size": 60, "write_page_checksum": True, "write_page_index": True}
    pq.write_table(pa.table({"l": lists}), out, compression="none", **options)
    data = out.getvalue()
    pages = data_pages(data, 0, "l.list.element")
    assert any(page.num_values == 0 for page in pages), "no page is empty"
    frame, lost = read_skipping_damage(damage_body(data, pages[0]))
    (rows,) = [item.rows for item in lost]
    assert rows[0] == 0
    assert [[v if v == v else None for v in values] for values in frame["l"]] == lists[rows[1] :]
    (empty,) = [page for page in pages if page.num_values == 0]
    frame, lost = read_skipping_damage(damage_body(data, empty))
    assert lost == []
    assert [[v if v == v else None for v in values] for values in frame["l"]] == lists


@pytest.mark.parametrize("leaf", ["few", "kind", "map.key_value.key"])
@pytest.mark.parametrize("damage", [damage_body, damage_header])
def test_damaged_dictionary_loses_the_chunk(leaf: str, damage) -> None:
    data = written_file(use_dictionary=True)
    damaged = damage(data, dictionary_page(data, 1, leaf))
    if leaf != "kind":
        assert_only_lost(damaged, data, [(1, leaf, (400, 800))])
    else:
        frame, lost = read_skipping_damage(damaged)
        assert [item[1:4] for item in lost] == [(1, leaf, (400, 800))]
        assert frame["kind"].tolist() == [f"kind {n % 9}" for n in range(ROWS) if not 400 <= n < 800]


def test_fully_lost_column_is_dropped() -> None:
    data = damaged = written_file()
    for row_group in range(3):
        damaged = damage_body(damaged, dictionary_page(data, row_group, "few"))
    lost = [(group, "few", (group * 400, group * 400 + 400)) for group in range(3)]
    assert_only_lost(damaged, data, lost, ["few"])


def test_losses_of_all_leaves_add_up_for_nested_columns() -> None:
    data = damaged = written_file(write_page_index=False)
    for row_group, leaf in ((0, "struct.x"), (1, "struct.y"), (2, "struct.x")):
        damaged = damage_header(damaged, pages_of(data, row_group, leaf)[0])
    lost = [(0, "struct.x", (0, 400)), (1, "struct.y", (400, 800)), (2, "struct.x", (800, 1200))]
    assert_only_lost(damaged, data, lost, ["struct"])
    frame, lost = read_skipping_damage(damaged, columns=["struct.y", "int"])
    assert (len(frame), [item[1:4] for item in lost]) == (800, [(1, "struct.y", (400, 800))])


def test_column_lost_in_a_single_row_group() -> None:
    data = written_file(row_group_size=ROWS, write_page_index=False)
    assert_only_lost(damage_header(data, pages_of(data, 0, "time")[0]), data, [(0, "time", (0, ROWS))], ["time"])


def test_most_damaged_columns_are_dropped_until_rows_remain() -> None:
    data = damaged = written_file(write_page_index=False)
    for row_group, leaf, page in ((0, "int", 0), (1, "int", 2), (1, "flag", 0), (2, "text", 1), (2, "day", 0)):
        damaged = damage_header(damaged, data_pages(data, row_group, leaf)[page])
    lost = [
        (0, "int", (0, 400)),
        (1, "int", (600, 800)),
        (1, "flag", (400, 800)),
        (2, "text", (900, 1200)),
        (2, "day", (800, 1200)),
    ]
    assert_only_lost(damaged, data, lost, ["int"])


def test_all_columns_lost() -> None:
    frame = pd.DataFrame({"a": np.arange(10)})
    data = numparq.to_parquet(frame, write_page_index=False)
    got, lost = read_skipping_damage(damage_header(data, pages_of(data, 0, "a")[0]))
    assert got.shape == (10, 0)
    assert [item[1:4] for item in lost] == [(0, "a", (0, 10))]
