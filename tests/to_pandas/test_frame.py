"""Blocks and frames from hand-made buffers: memory sharing, index, labels, strings and categories."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.errors import LimitError
from numparq.format.key_values.pandas import PandasMetadata
from numparq.format.logical_type import LogicalType
from numparq.kernels.enums import BOOLEAN, BYTE_ARRAY, FLOAT, INT32, INT64, INT96
from numparq.kernels.status import INEXACT, NO_DICTIONARY, NULL_FOUND
from numparq.kernels.tables import SLACK
from numparq.to_pandas import dictionary
from numparq.to_pandas.dictionary import dictionary_encode, merge_dictionaries
from numparq.to_pandas.frame import allocate_blocks, assemble
from numparq.types import choose as types_choose
from numparq.types.output_type import fallback_type

STRING = LogicalType("STRING")


def choose(physical, annotation=None, optional=True, length=None, **options):
    leaf = SimpleNamespace(
        physical=physical, type_length=length, logical=annotation, max_definition_level=int(optional)
    )
    return types_choose.choose_output_type(leaf, **options)


def binary_array(*values):
    """Build a `BinaryArray` of bytes and Nones."""
    lengths = [len(value or b"") for value in values]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    data = np.frombuffer(b"".join(value or b"" for value in values), np.uint8)
    validity = np.array([value is not None for value in values], np.uint8)
    return BinaryArray(offsets, data, None if validity.all() else validity)


def fixed(layout, position, values, validity=None):
    layout.values[position][:] = values
    if validity is not None and layout.validity[position] is not None:
        layout.validity[position][:] = validity
    nulls = 0 if validity is None else len(validity) - sum(validity)
    return DecodedColumn(layout.values[position], layout.validity[position], nulls)


def frame_of(targets, columns, metadata=None, separate=(), extra=()):
    layout = allocate_blocks(targets, len(columns[0][0]), separate)
    buffers = [fixed(layout, place, *column) for place, column in enumerate(columns)]
    return assemble(layout, buffers, [f"c{place}" for place in range(len(targets))], metadata, extra), layout


# --- blocks ----------------------------------------------------


def test_columns_of_one_dtype_share_a_block():
    ints, floats = choose(INT64, optional=False), choose(FLOAT)
    frame, layout = frame_of([ints, floats, ints], [([1, 2],), ([0.5, np.nan],), ([3, 4],)])
    assert [block.shape for block in layout.blocks] == [(2, 2), (1, 2)]
    assert layout.block_of == [0, 1, 0]
    assert layout.row_of == [0, 0, 1]
    assert len(frame._mgr.blocks) == 2
    pd.testing.assert_frame_equal(frame, pd.DataFrame({"c0": [1, 2], "c1": np.float32([0.5, np.nan]), "c2": [3, 4]}))
    for place in range(3):
        assert np.shares_memory(frame.iloc[:, place].to_numpy(), layout.values[place])


def test_every_array_has_slack():
    layout = allocate_blocks([choose(INT64), choose(BOOLEAN, has_nulls=True), choose(7, length=3)], 5)
    for array in [*layout.blocks, *filter(lambda item: item is not None, layout.values + layout.validity)]:
        base = array
        while base.base is not None:
            base = base.base
        first, last = array.__array_interface__["data"][0], base.__array_interface__["data"][0] + base.nbytes
        assert last - (first + array.nbytes) >= SLACK


def test_only_masked_columns_have_validity():
    layout = allocate_blocks([choose(INT64), choose(INT64, dtype_backend="numpy_nullable"), choose(BYTE_ARRAY)], 3)
    assert [item is not None for item in layout.validity] == [False, True, False]
    assert [item is not None for item in layout.values] == [True, True, False]


def test_allocation_beyond_memory_is_refused():
    with pytest.raises(LimitError, match="not enough memory for"):
        allocate_blocks([choose(INT64)] * 4, 1 << 58)
    with pytest.raises(MemoryError):
        allocate_blocks([choose(7, length=2**31 - 1)], 1 << 40)


def test_reallocated_column_leaves_its_block():
    target = choose(INT64)
    layout = allocate_blocks([target] * 4, 3)
    for place in range(4):
        layout.values[place][:] = place
    layout.reallocate(1, fallback_type(target, NULL_FOUND))
    assert layout.values[1].dtype == np.float64
    assert layout.block_of[1] is None
    layout.reallocate(1, fallback_type(layout.targets[1], INEXACT))
    buffers = [DecodedColumn(layout.values[place]) for place in range(4)]
    buffers[1] = fixed(layout, 1, [2**60 + 1, 0, 5], [1, 0, 1])
    frame = assemble(layout, buffers, list("abcd"))
    assert [str(dtype) for dtype in frame.dtypes] == ["int64", "Int64", "int64", "int64"]
    assert frame["b"].tolist() == [2**60 + 1, pd.NA, 5]
    assert frame[["a", "c", "d"]].iloc[0].tolist() == [0, 2, 3]
    assert np.shares_memory(frame["d"].to_numpy(), layout.blocks[0])


def test_widened_integers_without_nulls_go_back():
    wide, small = choose(INT64, has_nulls=True), choose(INT32, has_nulls=True)
    assert wide.array_kind == small.array_kind == "widened"
    frame, layout = frame_of([wide, small, wide], [([1, -(2**53)],), ([7, 8],), ([1.0, np.nan], [1, 0])])
    assert [str(dtype) for dtype in frame.dtypes] == ["int64", "int32", "float64"]
    assert frame["c0"].tolist() == [1, -(2**53)]
    assert frame["c1"].tolist() == [7, 8]
    assert np.shares_memory(frame["c0"].to_numpy(), layout.blocks[0])  # in place


def test_masked_column_without_nulls():
    target = choose(INT64, dtype_backend="numpy_nullable")
    frame, layout = frame_of([target], [([1, 2],)])
    pd.testing.assert_frame_equal(frame, pd.DataFrame({"c0": [1, 2]}, dtype="Int64"))
    assert np.shares_memory(frame["c0"].array._data, layout.values[0])


def test_wide_frames_have_one_block():
    target = choose(FLOAT)
    layout = allocate_blocks([target] * 1000, 2)
    for values in layout.values:
        values[:] = 1
    frame = assemble(layout, [DecodedColumn(values) for values in layout.values], [f"c{i}" for i in range(1000)])
    assert len(frame._mgr.blocks) == 1
    assert frame.shape == (2, 1000)


# --- index, labels, extra columns ----------------------------------------------------


def test_index_columns_become_the_index():
    metadata = PandasMetadata({"index_columns": ["c1"]})
    ints = choose(INT64, optional=False)
    for separate in ((), (1,)):
        frame, layout = frame_of([ints, ints, ints], [([1, 2],), ([3, 4],), ([5, 6],)], metadata, separate)
        expected = pd.DataFrame({"c0": [1, 2], "c2": [5, 6]}, index=pd.Index([3, 4], name="c1"))
        pd.testing.assert_frame_equal(frame, expected)
        assert np.shares_memory(frame.index.to_numpy(), layout.values[1]) == bool(separate)
        assert not separate or not any(np.shares_memory(frame.index.to_numpy(), block) for block in layout.blocks)


def test_extra_columns_come_last():
    extra = [("row", np.array([7, 8])), ("file", pd.array(["f", "f"], dtype="str"))]
    frame, _ = frame_of([choose(INT64, optional=False)], [([1, 2],)], extra=extra)
    pd.testing.assert_frame_equal(frame, pd.DataFrame({"c0": [1, 2], "row": [7, 8], "file": ["f", "f"]}))


def test_rows_without_columns():
    frame = assemble(allocate_blocks([], 3), [], [])
    assert frame.shape == (3, 0)
    assert isinstance(frame.index, pd.RangeIndex)


def test_duplicate_column_names():
    layout = allocate_blocks([choose(INT64, optional=False)] * 2, 1)
    frame = assemble(layout, [fixed(layout, 0, [1]), fixed(layout, 1, [2])], ["a", "a"])
    assert frame.columns.tolist() == ["a", "a"]
    assert frame.iloc[0].tolist() == [1, 2]


def test_attrs_from_metadata():
    metadata = PandasMetadata({"attributes": {"k": 1}})
    assert assemble(allocate_blocks([], 0), [], [], metadata).attrs == {"k": 1}


# --- strings and categories ----------------------------------------------------


def binary_frame(target, *pieces):
    layout = allocate_blocks([target], sum(map(len, pieces)))
    return assemble(layout, [DecodedColumn(arrays=list(pieces))], ["a"])["a"]


def test_strings_from_several_arrays():
    got = binary_frame(
        choose(BYTE_ARRAY, STRING), binary_array(b"a", None, "grün".encode()), binary_array(), binary_array(b"", b"zz")
    )
    assert got.dtype == "str"
    assert got.tolist()[0:1] + got.tolist()[2:] == ["a", "grün", "", "zz"]
    assert got.isna().tolist() == [False, True] + [False] * 3


def test_binary_columns_without_arrays():
    assert binary_frame(choose(BYTE_ARRAY, STRING)).tolist() == []
    assert binary_frame(choose(BYTE_ARRAY)).dtype == object
    assert binary_frame(choose(BYTE_ARRAY, STRING, categorical=True)).dtype == "category"


def coded(codes, *values):
    return DictionaryArray(np.array(codes, np.int32), binary_array(*values))


def test_categories_from_one_array_keep_its_dictionary():
    got = binary_frame(choose(BYTE_ARRAY, STRING, categorical=True), coded([1, -1, 1], b"z", b"y"))
    assert got.cat.categories.tolist() == ["z", "y"]
    assert got.cat.codes.tolist() == [1, -1, 1]
    assert got.cat.codes.dtype == np.int8
    assert not got.cat.ordered


def test_categories_from_several_arrays_in_order_of_appearance():
    pieces = coded([0, 1], b"b", b"a"), coded([1, 0, -1], b"c", b"a"), binary_array(b"d", None, b"b")
    got = binary_frame(choose(BYTE_ARRAY, STRING, categorical=True), *pieces)
    assert got.cat.categories.tolist() == ["b", "a", "c", "d"]
    assert got.tolist()[:4] == ["b", "a", "a", "c"]
    assert got.cat.codes.tolist() == [0, 1, 1, 2, -1, 3, -1, 0]


def test_duplicate_dictionary_entries_become_one_category():
    got = binary_frame(choose(BYTE_ARRAY, STRING, categorical=True), coded([0, 1, 2], b"b", b"b", b"a"))
    assert got.cat.categories.tolist() == ["b", "a"]
    assert got.cat.codes.tolist() == [0, 0, 1]


def test_categories_of_bytes():
    got = binary_frame(choose(BYTE_ARRAY, categorical=True), coded([0, -1], b"\xff"))
    assert got.cat.categories.tolist() == [b"\xff"]
    assert got.cat.categories.dtype == object


@pytest.mark.parametrize(("count", "dtype"), [(126, np.int8), (127, np.int16), (40_000, np.int32)])
def test_category_code_width(count, dtype):
    values = [str(i).encode() for i in range(count)]
    got = binary_frame(choose(BYTE_ARRAY, STRING, categorical=True), coded([count - 1, -1], *values))
    assert got.cat.codes.dtype == dtype
    assert got.tolist()[0] == str(count - 1)
    assert got.cat.codes.dtype == pd.Categorical(list(map(str, range(count)))).codes.dtype


def test_merge_dictionaries_remaps_codes():
    shared = binary_array(b"x", b"y")
    remaps, merged = merge_dictionaries([shared, binary_array(b"y", b"q"), shared])
    assert [remap.tolist() for remap in remaps] == [[0, 1, -1], [1, 2, -1], [0, 1, -1]]
    assert bytes(merged.data[: merged.offsets[-1]]) == b"xyq"
    assert merged.offsets.tolist() == [0, 1, 2, 3]


def test_merge_of_dictionary_with_duplicate_value():
    remaps, merged = merge_dictionaries([binary_array(b"a", b"a"), binary_array(b"b")])
    assert [remap.tolist() for remap in remaps] == [[0, 0, -1], [1, -1]]
    assert bytes(merged.data[: merged.offsets[-1]]) == b"ab"


def test_dictionary_encode():
    encoded = dictionary_encode(binary_array(b"x", None, b"", b"x"))
    assert encoded.codes.tolist() == [0, -1, 1, 0]
    assert bytes(encoded.dictionary.data[: encoded.dictionary.offsets[-1]]) == b"x"


def test_dictionary_encode_of_values_that_collide(monkeypatch):
    """The kernel gives up on values made to collide in its table."""
    values = [b"x", None, b"", b"x", b"long enough to be hashed"]
    expected = dictionary_encode(binary_array(*values))
    monkeypatch.setattr(dictionary.object_kernels, "index_binary", lambda *args: NO_DICTIONARY)
    encoded = dictionary_encode(binary_array(*values))
    assert encoded.codes.tolist() == expected.codes.tolist() == [0, -1, 1, 0, 2]
    assert encoded.dictionary.offsets.tolist() == expected.dictionary.offsets.tolist()
    size = encoded.dictionary.offsets[-1]
    assert bytes(encoded.dictionary.data[:size]) == bytes(expected.dictionary.data[:size])


def test_int96_falls_back_to_microseconds():
    target = choose(INT96)
    layout = allocate_blocks([target, target], 2)
    layout.values[0].view("i8")[:] = [1, 2]
    layout.reallocate(1, fallback_type(target, INEXACT))
    layout.values[1].view("i8")[:] = [10**18, -(10**18)]
    frame = assemble(layout, [DecodedColumn(values) for values in layout.values], ["a", "b"])
    assert [str(dtype) for dtype in frame.dtypes] == ["datetime64[ns]", "datetime64[us]"]
    assert frame["b"].dt.year.tolist() == [33658, -29719]
