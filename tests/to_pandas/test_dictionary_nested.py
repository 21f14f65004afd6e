"""Dictionary-encoded strings and bytes in nested columns: each entry is converted once."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import CorruptPageError, read_parquet
from numparq.column.buffers import BinaryArray, DictionaryArray
from numparq.column.read import page_sources
from numparq.to_pandas.dictionary import dictionary_decode, from_byte_strings, objects_by_entry
from numparq.to_pandas.nested.objects import NestedObjectBuilder
from support.compare import BACKENDS, assert_frames_equal, backend_options, read_by_pandas
from support.files.page_damage import damage_body, data_pages

ROWS = 3000


def word(rng: np.random.Generator, row: int) -> str:
    """Return one of few words; in the middle rows one of many, so that the dictionary overflows; others at the end."""
    if ROWS // 3 < row < ROWS // 2:
        return f"{row} is met once"
    return f"wörd {rng.integers(20)}{'!' if row > 2 * ROWS // 3 else ''}"


def table() -> pa.Table:
    """Return strings and bytes at several depths, with nulls at every level."""
    rng = np.random.default_rng(5)

    def one(row, make, chance=0.2):
        return None if rng.random() < chance else make(row)

    def text(row):
        return one(row, lambda row: word(rng, row))

    def texts(row):
        return one(row, lambda row: [text(row) for _ in range(rng.integers(4))])

    def struct(row):
        return one(row, lambda row: {"s": text(row), "n": row, "b": one(row, lambda row: word(rng, row).encode())})

    def pairs(row):
        return [(word(rng, row), text(row)) for _ in range(rng.integers(3))]

    makers = {
        "list": (texts, pa.list_(pa.string())),
        "lists": (
            lambda row: one(row, lambda row: [texts(row) for _ in range(rng.integers(3))]),
            pa.list_(pa.list_(pa.string())),
        ),
        "struct": (struct, pa.struct({"s": pa.string(), "n": pa.int32(), "b": pa.binary()})),
        "structs": (
            lambda row: one(row, lambda row: [struct(row) for _ in range(rng.integers(3))]),
            pa.list_(pa.struct({"s": pa.string(), "n": pa.int32(), "b": pa.binary()})),
        ),
        "map": (lambda row: one(row, pairs), pa.map_(pa.string(), pa.string())),
    }
    return pa.table({name: pa.array([make(row) for row in range(ROWS)], kind) for name, (make, kind) in makers.items()})


TABLE = table()
FILES = {
    "one dictionary": {},
    "several dictionaries": {"row_group_size": 500},
    "PLAIN behind dictionaries": {"dictionary_pagesize_limit": 1500, "data_page_size": 700},
    "small pages": {"data_page_version": "2.0", "data_page_size": 300, "row_group_size": 1700},
}


def written(table: pa.Table, **options) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **{"write_batch_size": 64, **options})
    return buffer.getvalue()


@pytest.fixture(params=[300, page_sources.WINDOW_BYTES], ids=str)
def window(request, monkeypatch):
    monkeypatch.setattr(page_sources, "WINDOW_BYTES", request.param)


@pytest.mark.usefixtures("window")
@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize("name", FILES)
def test_nested_dictionaries_match_pandas(name: str, dtype_backend: str | None) -> None:
    data = written(TABLE, **FILES[name])
    expected = read_by_pandas(data, **backend_options(dtype_backend))
    assert_frames_equal(read_parquet(data, **backend_options(dtype_backend)), expected)


@pytest.mark.usefixtures("window")
@pytest.mark.parametrize("rows", [(0, 1), (499, 502), (700, 1600), (2990, 3000), (5, 5)])
@pytest.mark.parametrize("name", FILES)
def test_row_ranges_match_pandas(name: str, rows: tuple[int, int]) -> None:
    got = read_parquet(written(TABLE, **FILES[name]), row_range=rows)
    expected = read_by_pandas(written(TABLE)).iloc[slice(*rows)]
    for column in expected:
        assert plain(list(got[column])) == plain(list(expected[column]))


def plain(value):
    return [plain(item) for item in value] if isinstance(value, (list, np.ndarray)) else value


@pytest.mark.usefixtures("window")
def test_one_object_per_dictionary_entry() -> None:
    strings = pa.array([[f"string {number % 7}", None] for number in range(600)])
    got = read_parquet(written(pa.table({"c": strings}), row_group_size=300))["c"]
    assert len({id(value) for row in got for value in row[:1]}) == 2 * 7


@pytest.mark.parametrize("dtype_backend", BACKENDS)
def test_struct_fields_and_exploded_elements(dtype_backend: str | None) -> None:
    """These become flat columns."""
    data, options = written(TABLE), backend_options(dtype_backend)
    expected = TABLE.column("struct").combine_chunks().flatten()[0].to_pylist()
    assert read_parquet(data, columns=["struct.s"], **options).iloc[:, 0].isna().tolist() == [
        s is None for s in expected
    ]
    assert read_parquet(data, columns=["struct.s"], **options).iloc[:, 0].dropna().tolist() == list(
        filter(None, expected)
    )
    elements = read_parquet(data, columns=["list"], explode="list", **options).iloc[:, 0].dropna().tolist()
    assert elements == [s for row in TABLE.column("list").to_pylist() if row for s in row if s is not None]
    inner = read_parquet(data, columns=["lists"], explode="lists", **options).iloc[:, 0].dropna()
    assert plain(inner.tolist()) == [
        s for row in TABLE.column("lists").to_pylist() if row for s in row if s is not None
    ]


def test_damaged_page_is_skipped() -> None:
    strings = [[f"string {number % 9}"] * (number % 3) or None for number in range(3000)]
    frame = pd.DataFrame({"c": strings, "n": range(3000)})
    data = numparq.to_parquet(frame, row_group_size=1000, max_rows_per_page=100, data_page_version="1.0")
    page = data_pages(data, 1, "c.list.element")[3]
    damaged = damage_body(data, page)
    with pytest.raises(CorruptPageError) as caught:
        read_parquet(damaged)
    assert caught.value.where["page"] == 4  # the dictionary is page 0
    got = read_parquet(damaged, on_error="skip")
    assert [item.rows for item in got.attrs["numparq.lost"]] == [(1300, 1400)]
    kept = [row for row in range(3000) if not 1300 <= row < 1400]
    assert got["n"].tolist() == kept
    assert plain(got["c"].tolist()) == [strings[row] for row in kept]


@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize("number", [0, 3, 9])
def test_damage_without_crc_names_its_page(number: int, dtype_backend: str | None) -> None:
    """Checks besides the CRC find it, such as codes beyond the dictionary."""
    frame = pd.DataFrame({"c": [[f"string {number % 9}"] for number in range(1000)]})
    data = numparq.to_parquet(frame, max_rows_per_page=100, data_page_version="1.0", compression=None)
    page = data_pages(data, 0, "c.list.element")[number]
    for position in (page.body, page.end - 5):  # length of the levels; codes
        damaged = data[:position] + b"\xff" + data[position + 1 :]
        with pytest.raises(CorruptPageError) as caught:
            read_parquet(damaged, verify_crc=False, **backend_options(dtype_backend))
        assert caught.value.where["page"] == number + 1  # the dictionary is page 0


def test_rows_lost_in_another_column_leave_codes() -> None:
    """Rows that another column lost are removed from the codes as well."""
    strings = [[f"string {number % 9}"] * (number % 3) or None for number in range(3000)]
    frame = pd.DataFrame({"c": strings, "n": range(3000)})
    data = numparq.to_parquet(frame, row_group_size=1000, max_rows_per_page=100, data_page_version="1.0")
    got = read_parquet(damage_body(data, data_pages(data, 2, "n")[5]), on_error="skip")
    kept = [row for row in range(3000) if not 2500 <= row < 2600]
    assert plain(got["c"].tolist()) == [strings[row] for row in kept]


# --- objects_by_entry -------------------------------------------------------------------------------------------------


def byte_objects(pieces: list[BinaryArray]) -> np.ndarray:
    CONVERTED.append(sum(map(len, pieces)))
    found = [
        piece.data[a:b].tobytes() for piece in pieces for a, b in zip(piece.offsets, piece.offsets[1:], strict=False)
    ]
    return np.array([*found, None], object)[:-1]


CONVERTED: list[int] = []


def coded(codes: list[int], dictionary: BinaryArray) -> DictionaryArray:
    return DictionaryArray(np.array(codes, np.int32), dictionary)


def test_entries_are_converted_once() -> None:
    first, second = from_byte_strings([b"a", b"bb", b""]), from_byte_strings([b"c", b"a"])
    values = [
        coded([2, 0, 1, 1], first),
        coded([0, 0, 2], first),
        from_byte_strings([b"x", b"y"]),
        coded([1, 0, 1], second),
    ]
    CONVERTED.clear()
    assert objects_by_entry(values, byte_objects).tolist() == [
        b"",
        b"a",
        b"bb",
        b"bb",
        b"a",
        b"a",
        b"",
        b"x",
        b"y",
        b"a",
        b"c",
        b"a",
    ]
    assert CONVERTED == [3, 2, 2]


def test_only_used_entries_are_converted() -> None:
    large = from_byte_strings([b"%d" % number for number in range(1000)])
    values = [coded([999, 5, 999], large), coded([7], large), coded([8], large), coded([], large)]
    CONVERTED.clear()
    assert objects_by_entry(values, byte_objects).tolist() == [b"999", b"5", b"999", b"7", b"8"]
    assert CONVERTED == [2, 1, 1, 0]


def test_values_without_dictionary() -> None:
    assert objects_by_entry([], byte_objects).tolist() == []
    assert objects_by_entry([from_byte_strings([b"a"]), from_byte_strings([b"b"])], byte_objects).tolist() == [
        b"a",
        b"b",
    ]


@pytest.mark.parametrize("codes", [[], [1], [2, 0, 2, 1]])
def test_dictionary_decode(codes: list[int]) -> None:
    words = [b"a", b"bb", b""]
    piece = dictionary_decode(coded(codes, from_byte_strings(words)))
    assert byte_objects([piece]).tolist() == [words[code] for code in codes]
    assert dictionary_decode(piece) is piece


def test_small_dictionaries_stay_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only small dictionaries stay encoded until objects are built."""
    array_types = []
    values = NestedObjectBuilder._values
    monkeypatch.setattr(
        NestedObjectBuilder,
        "_values",
        lambda builder, array: (array_types.extend(map(type, array.values)), values(builder, array))[1],
    )
    few, many = pa.array([["a", "b"]] * 50), pa.array([[f"{number}", "b"] for number in range(50)])
    read_parquet(written(pa.table({"few": few, "many": many})))
    assert array_types == [DictionaryArray, BinaryArray]
