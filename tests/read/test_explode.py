"""``explode``: Impala's queries, columns and their names, index, legacy list schemas, errors."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import InvalidFileError, SchemaError, read_parquet
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY, INT32, INT64
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode
from numparq.to_pandas.nested import explode as nested_explode
from numparq.to_pandas.nested.column import NestedOutput
from support.compare import BACKENDS, backend_options, write_by_pyarrow
from support.data.nested_columns import object_series
from support.oracles.explode import frame_to_python

LIST, MAP, STRING = map(LogicalType, ("LIST", "MAP", "STRING"))

# --- queries of Impala's documentation --------------------------------------------------------------------------

NESTED = [None, [], [None], [[]], [[None]], [[1, None], [2]], [[3]]]
PAIRS = [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (4, 2), (5, 1), (5, 0)]


def group(name, *children, repetition=OPTIONAL, logical=None):
    return SchemaNode(name, repetition, logical=logical, children=children)


def repeated(name, *children, logical=None):
    return group(name, *children, repetition=REPEATED, logical=logical)


IMPALA = [
    SchemaNode("id", REQUIRED, INT64),
    group(
        "array_col",
        repeated("list", group("item", repeated("list", SchemaNode("item", OPTIONAL, INT32)), logical=LIST)),
        logical=LIST,
    ),
]


def impala_file(**options):
    frame = pd.DataFrame({"id": range(7), "array_col": pd.Series(object_series(NESTED))})
    return numparq.to_parquet(frame, schema=IMPALA, store_schema=False, **options)


@pytest.fixture(params=[{}, {"row_group_size": 3}, {"max_rows_per_page": 1, "data_page_version": "2.0"}], ids=str)
def impala(request):
    return impala_file(**request.param)


def test_levels_match_impala_documentation(impala, monkeypatch):
    recorded = []

    def record(self, *read):
        recorded.extend(original(self, *read).values())
        return dict(zip([leaf.index for leaf in self.column.leaves], recorded, strict=True))

    original = NestedOutput.leaf_pieces
    monkeypatch.setattr(NestedOutput, "leaf_pieces", record)
    read_parquet(impala, explode="array_col.list.item.list.item")
    (piece,) = recorded
    assert list(zip(piece.definition.tolist(), piece.repetition.tolist(), strict=True)) == PAIRS


ROWS = [(4, None), (5, 1), (5, None), (5, 2), (6, 3)]


@pytest.mark.parametrize("dtype_backend", BACKENDS)
def test_query_1_id_with_nested_items(impala, dtype_backend):
    got = read_parquet(impala, explode="array_col.list.item.list.item", **backend_options(dtype_backend))
    assert got.columns.tolist() == ["id", "array_col"]
    assert list(zip(*frame_to_python(got), strict=True)) == ROWS


@pytest.mark.parametrize("dtype_backend", BACKENDS)
def test_query_2_items_alone(impala, dtype_backend):
    """Nine pairs of levels, five rows: null and empty lists have no row."""
    path = "array_col.list.item.list.item"
    got = read_parquet(impala, explode=path, columns=[path], **backend_options(dtype_backend))
    expected = pd.DataFrame({"array_col": [None, 1, None, 2, 3]}, dtype="float64")
    if dtype_backend:
        name = "Int32" if dtype_backend == "numpy_nullable" else "int32[pyarrow]"
        expected = pd.DataFrame({"array_col": pd.array([None, 1, None, 2, 3], dtype=name)})
    pd.testing.assert_frame_equal(got, expected)


def test_query_3_inner_items_with_id(impala):
    got = read_parquet(impala, columns=["id", "array_col"], explode=("array_col", "list", "item", "list", "item"))
    assert list(zip(*frame_to_python(got), strict=True)) == ROWS
    assert got["id"].dtype == "int64"
    assert isinstance(got.index, pd.RangeIndex)


def test_outer_lists_only(impala):
    for path in ("array_col", "array_col.list", "array_col.list.item"):
        got = read_parquet(impala, explode=path, include=["position"])
        assert frame_to_python(got) == [[2, 3, 4, 5, 5, 6], [None, [], [None], [1, None], [2], [3]], [0, 0, 0, 0, 1, 0]]


# --- columns and their names ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def orders():
    lines = [{"id": 7, "tags": ["t", "u"], "price": {"net": 1.5, "tax": 0.5}}, None]
    more = [{"id": 8, "tags": None, "price": None}]
    notes = pa.map_(pa.string(), pa.list_(pa.int32()))
    return write_by_pyarrow(
        pa.table(
            {
                "id": [1, 2, 3, 4],
                "order": [{"by": "ann", "lines": lines}, {"by": "bob", "lines": []}, None, {"by": None, "lines": more}],
                "note": pa.array([[("k", [1, 2]), ("l", None)], None, [], [("m", [3])]], notes),
                "a.b": [["x"], [], None, ["y"]],
            }
        ),
        row_group_size=3,
    )


ELEMENT = "order.lines.list.element"
TAX = {"net": 1.5, "tax": 0.5}


@pytest.mark.parametrize(
    ("explode", "columns", "names", "values"),
    [
        (
            "order.lines",
            ["order"],
            ["by", "id", "tags", "price"],
            [["ann", "ann", None], [7, None, 8], [["t", "u"], None, None], [TAX, None, None]],
        ),
        (
            "order.lines",
            ["id", "order.lines"],
            ["id", f"{ELEMENT}.id", "tags", "price"],
            [[1, 1, 4], [7, None, 8], [["t", "u"], None, None], [TAX, None, None]],
        ),
        (
            "order.lines",
            [f"{ELEMENT}.price.net", "id", "order.by"],
            ["net", "id", "by"],
            [[1.5, None, None], [1, 1, 4], ["ann", "ann", None]],
        ),
        (
            "order.lines",
            [f"{ELEMENT}.tags.list.element", f"{ELEMENT}.id"],
            ["tags", "id"],
            [[["t", "u"], None, None], [7, None, 8]],
        ),
        ("order.lines", ["id"], ["id"], [[1, 1, 4]]),
        (
            "order.lines",
            [("order", "by"), ("order", "lines", "list", "element", "price")],
            ["by", "price"],
            [["ann", "ann", None], [TAX, None, None]],
        ),
        (
            ELEMENT + ".tags",
            ["id", "order"],
            ["id", "by", f"{ELEMENT}.id", "tags", "price"],
            [[1, 1], ["ann", "ann"], [7, 7], ["t", "u"], [TAX, TAX]],
        ),
        (ELEMENT + ".tags.list.element", [ELEMENT + ".tags"], ["tags"], [["t", "u"]]),
        ("note", ["id", "note"], ["id", "key", "value"], [[1, 1, 4], ["k", "l", "m"], [[1, 2], None, [3]]]),
        ("note.key_value", ["note.key_value.key"], ["key"], [["k", "l", "m"]]),
        (
            "note.key_value.value",
            ["id", "note.key_value"],
            ["id", "key", "value"],
            [[1, 1, 4], ["k", "k", "m"], [1, 2, 3]],
        ),
        ("note.key_value.value", ["note.key_value.value"], ["value"], [[1, 2, 3]]),
        ("a.b", ["a.b", "id", "order.by"], ["a.b", "id", "by"], [["x", "y"], [1, 4], ["ann", None]]),
        (("a.b", "list", "element"), [("a.b",)], ["a.b"], [["x", "y"]]),
        (
            "a.b",
            ["order.lines.list.element.id", "order.lines.list.element.price.tax"],
            ["order"],
            [[{"lines": [{"id": 7, "price": {"tax": 0.5}}, None]}, {"lines": [{"id": 8, "price": None}]}]],
        ),
    ],
)
def test_columns_and_their_names(orders, explode, columns, names, values):
    got = read_parquet(orders, columns=columns, explode=explode)
    assert got.columns.tolist() == names
    assert frame_to_python(got) == values


def test_all_columns_in_file_order(orders):
    got = read_parquet(orders, explode="order.lines")
    assert got.columns.tolist() == ["id", "by", f"{ELEMENT}.id", "tags", "price", "note", "a.b"]
    assert frame_to_python(got)[-1] == [["x"], ["x"], ["y"]]


def test_leaves_of_a_nested_list_stay_together(orders):
    got = read_parquet(
        write_by_pyarrow(pa.table({"c": [[{"l": [{"x": 1, "y": 2, "z": 3}]}]]})),
        explode="c",
        columns=["c.list.element.l.list.element.x", "c.list.element.l.list.element.z"],
    )
    assert frame_to_python(got) == [[[{"x": 1, "z": 3}]]]


def test_no_columns(orders):
    got = read_parquet(orders, explode="order.lines", columns=[])
    assert got.shape == (3, 0)
    assert isinstance(got.index, pd.RangeIndex)


def test_virtual_columns(orders):
    include = ["row_number", "position", "row_group"]
    got = read_parquet(orders, explode="order.lines", columns=["id"], include=include)
    assert got.columns.tolist() == ["id", *include]
    assert frame_to_python(got) == [[1, 1, 4], [0, 0, 3], [0, 1, 0], [0, 0, 1]]
    assert got["position"].dtype == "int64"
    got = read_parquet(orders, explode=ELEMENT + ".tags", columns=["id"], include="position")
    assert frame_to_python(got) == [[1, 1], [0, 1]]


def test_row_selection_counts_file_rows(orders):
    read = {"explode": "order.lines", "columns": ["id"]}
    assert read_parquet(orders, nrows=1, **read)["id"].tolist() == [1, 1]
    assert read_parquet(orders, row_range=(1, 4), **read)["id"].tolist() == [4]
    assert read_parquet(orders, row_groups=[1, 0], **read)["id"].tolist() == [4, 1, 1]
    nothing, whole = (read_parquet(orders, nrows=nrows, explode="order.lines") for nrows in (0, None))
    assert len(nothing) == 0
    assert nothing.columns.tolist() == whole.columns.tolist()
    assert nothing["tags"].dtype == object
    assert nothing["by"].dtype == "str"


def test_only_projected_leaves_are_fetched():
    values = [[{"small": 1, "large": "x" * 100 + str(number)}] for number in range(3000)]
    data = write_by_pyarrow(pa.table({"c": values, "n": range(3000)}), compression="none", use_dictionary=False)
    for columns in (["c.list.element.small"], ["n"]):
        with numparq.ParquetFile(io.BytesIO(data)) as file:
            before = file._file.source.num_bytes
            assert len(file.read(columns=columns, explode="c")) == 3000
            assert file._file.source.num_bytes - before < 60_000 < len(data)


# --- index and labels -------------------------------------------------------------------------------------------


def test_the_index_is_repeated():
    frame = pd.DataFrame({"v": [1.5, 2.5, 3.5], "c": [[1, 2], [], [3]]})
    frame.attrs = {"a": 1}
    several = pd.MultiIndex.from_arrays([[1, 2, 3], list("abc")], names=["m", None])
    for index in (pd.Index(["x", "y", "z"], name="i"), several, pd.date_range("2020", periods=3, name="day")):
        data = numparq.to_parquet(frame.set_index(index))
        expected = frame.set_index(index).explode("c").dropna().astype({"c": "int64"})
        got = read_parquet(data, explode="c")
        pd.testing.assert_frame_equal(got, expected, check_freq=False)
        assert got.attrs == {"a": 1}
        assert read_parquet(data, explode="c", columns=["c"]).index.equals(expected.index)


def test_range_index_is_renumbered():
    frame = pd.DataFrame({"c": [[1], [2], [3]]}, index=pd.RangeIndex(5, 8, name="r"))
    got = read_parquet(numparq.to_parquet(frame), explode="c")
    pd.testing.assert_index_equal(got.index, pd.RangeIndex(3))


def test_non_string_labels():
    frame = pd.DataFrame({3: [1, 2], 4: [[5, 6], [7]]})
    got = read_parquet(numparq.to_parquet(frame), explode="4")
    assert got.columns.tolist() == [3, 4]
    assert frame_to_python(got) == [[1, 1, 2], [5, 6, 7]]


# --- legacy list schemas ----------------------------------------------------------------------------------------


def leaf(name, repetition=REQUIRED):
    return SchemaNode(name, repetition, INT32)


def text(name, repetition=REQUIRED):
    return SchemaNode(name, repetition, BYTE_ARRAY, logical=STRING)


FORMS = [
    (leaf("c", REPEATED), [[1, 2], [], [3]], ["c"], {"c": [1, 2, 3]}),
    (repeated("c", leaf("a"), text("b", OPTIONAL)), [[{"a": 1, "b": None}], []], ["c"], {"a": [1], "b": [None]}),
    (group("c", leaf("a", REPEATED)), [{"a": [1, 2]}, {"a": []}, None], ["c.a"], {"a": [1, 2]}),
    (group("c", leaf("element", REPEATED), logical=LIST), [[1, 2], None, []], ["c", "c.element"], {"c": [1, 2]}),
    (
        group("c", repeated("array", leaf("array", REPEATED), logical=LIST), logical=LIST),
        [[[1, 2], []], None],
        ["c.array.array"],
        {"c": [1, 2]},
    ),
    (group("c", repeated("array", text("s")), logical=LIST), [[{"s": "x"}], None, []], ["c", "c.array"], {"s": ["x"]}),
    (group("c", repeated("bag", text("s")), logical=LIST), [["x"], None, []], ["c", "c.bag", "c.bag.s"], {"c": ["x"]}),
    (
        group("c", repeated("map", text("s"), leaf("n")), logical=MAP),
        [[("a", 1)], None, []],
        ["c", "c.map"],
        {"s": ["a"], "n": [1]},
    ),
    (group("c", repeated("map", text("s")), logical=LIST), [["a"], None], ["c", "c.map", "c.map.s"], {"c": ["a"]}),
]


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_legacy_list_schemas(number):
    node, values, paths, expected = FORMS[number]
    frame = pd.DataFrame({"c": pd.Series(object_series(values))})
    data = numparq.to_parquet(frame, schema=[node], store_schema=False)
    for path in paths:
        got = read_parquet(data, explode=path)
        assert dict(zip(got.columns, frame_to_python(got), strict=True)) == expected


# --- errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("explode", "message"),
    [
        ("id", r"explode='id': the column is not a list or map"),
        ("order", r"explode='order': the path is not a list or map; .*of the column: 'order.lines.list.element', "),
        (ELEMENT + ".price", "not a list or map"),
        ("note.key_value.key", r"not a list or map; lists and maps of the column: 'note.key_value', "),
        ("orders", r"no column 'orders'; did you mean 'order'"),
        ("order.lines.list.item", r"no column .*did you mean 'order.lines.list.element'"),
        (ELEMENT + ".tags.list.element.x", "no column"),
        ("id.x", "not a list or map"),
        (("a", "b"), "no column"),
        ("", "no column ''"),
    ],
)
def test_explode_needs_a_list_or_map(orders, explode, message):
    with pytest.raises(SchemaError, match=message):
        read_parquet(orders, explode=explode)


def test_invalid_arguments(orders):
    for wrong in (3, ["note"], {"note": 1}):
        with pytest.raises(TypeError, match="explode must be the path of one list or map"):
            read_parquet(orders, explode=wrong)
    with pytest.raises(ValueError, match="needs explode"):
        read_parquet(orders, include=["position"])
    with pytest.raises(ValueError, match=r"include must name one of .*'position', not 'pos'"):
        read_parquet(orders, explode="note", include=["pos"])
    with pytest.raises(TypeError, match="columns must be a list of names"):
        read_parquet(orders, explode="note", columns="id")
    with pytest.raises(SchemaError, match=r"did you mean .*element\.id'"):
        read_parquet(orders, explode="order.lines", columns=["order.lines.list.element.ids"])
    data = write_by_pyarrow(pa.table({"c": [[{"position": 1}]]}))
    with pytest.raises(SchemaError, match="include='position' cannot be added: the result has"):
        read_parquet(data, explode="c", include=["position"])


def test_inconsistent_leaves_are_an_error():
    """Every leaf of the elements states how many there are, and all must agree."""
    from support.files.builder import parse_file

    one = {"x": 1, "y": 2}
    lists = [
        ([[one] * 2, [], None], [[one], [one], None]),
        ([[one, None]], [[None, one]]),
        ([[], [one]], [None, [one]]),
    ]
    deeper = [([[[one], [one]]], [[[one, one]]])]
    for depth, (these, those) in [*zip(itertools.repeat(1), lists), *zip(itertools.repeat(2), deeper)]:
        first, second = (
            parse_file(
                write_by_pyarrow(pa.table({"s": values}), compression="none", use_dictionary=False, store_schema=False)
            )
            for values in (these, those)
        )
        first.chunks[0, 1] = second.chunks[0, 1]
        other = second.footer.row_groups[0].columns[1].meta_data.num_values
        first.footer.row_groups[0].columns[1].meta_data.num_values = other
        data, path = first.stored(), "s" + ".list.element" * depth
        with pytest.raises(InvalidFileError, match=r"do not agree .*row group 0, column 's'"):
            read_parquet(data, explode=path)
        for name in ("x", "y"):
            assert read_parquet(data, explode=path, columns=[f"{path}.{name}"])[name].notna().any()


def test_take_beyond_arrow_string_capacity(monkeypatch):
    """pyarrow refuses to take more than 2 GiB of strings at once, so they are taken in parts."""
    data = write_by_pyarrow(pa.table({"n": [1, 2], "s": ["a", "b"], "c": [[[1], [2, 3]], [[4, 5], [6]]]}))
    expected = read_parquet(data, explode="c.list.element.list.element", dtype_backend="pyarrow")

    def limited(take):
        def limited_take(self, indices, *more, **options):
            if len(indices) > 2:
                raise pa.ArrowInvalid("Take operation overflowed binary array capacity")
            return take(self, indices, *more, **options)

        return limited_take

    monkeypatch.setattr(pd.DataFrame, "take", limited(pd.DataFrame.take))
    got = read_parquet(data, explode="c.list.element.list.element", dtype_backend="pyarrow")
    pd.testing.assert_frame_equal(got, expected)
    column = pd.array(["a", "b"], dtype="string[pyarrow]")
    monkeypatch.setattr(type(column), "take", limited(type(column).take))
    assert nested_explode._take_rows(column, np.array([0, 0, 1, 1, 1])).tolist() == list("aabbb")
