"""Errors of nested columns that do not fit the schema: the key or field, its path, and the row."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq.errors import SchemaError

STRUCT = pa.struct([("x", pa.int64())])
EXTRA_KEYS = {
    "struct": (STRUCT, {"x": 1}, {"x": 1, "zz": 2}, "s"),
    "only an unknown key": (STRUCT, {"x": 1}, {"zz": 2}, "s"),
    "list": (pa.list_(STRUCT), [{"x": 1}], [{"x": 1}, {"zz": 2}], "s.list.element"),
    "map": (pa.map_(pa.string(), STRUCT), {"k": {"x": 1}}, {"k": {"x": 1, "zz": 2}}, "s.key_value.value"),
    "struct in a struct": (pa.struct([("i", STRUCT)]), {"i": {"x": 1}}, {"i": {"x": 1, "zz": 2}}, "s.i"),
}


@pytest.mark.parametrize("case", EXTRA_KEYS)
def test_keys_that_the_schema_lacks_are_an_error(case: str):
    kind, good, bad, path = EXTRA_KEYS[case]
    frame = pd.DataFrame({"s": [good, None, good, bad, good]})
    with pytest.raises(SchemaError, match=r"^row 3: a dict has the key 'zz', but the schema does not") as raised:
        numparq.to_parquet(frame, schema={"s": kind})
    assert raised.value.where["column"] == path


@pytest.mark.parametrize("wrap", [lambda array: array, lambda array: pa.ListArray.from_arrays([0, 1], array)])
def test_arrow_fields_that_the_schema_lacks_are_an_error(wrap):
    table = pa.table({"s": wrap(pa.array([{"y": 2.0, "x": 1}]))})
    wanted = pa.schema([("s", wrap(pa.array([{"x": 1}], STRUCT)).type)])
    with pytest.raises(SchemaError, match="it has no field 'y'"):
        numparq.to_parquet(table, schema=wanted)


def test_arrow_fields_are_compared_by_name():
    table = pa.table({"s": pa.array([{"y": 0.5, "x": 1}])})
    schema = pa.schema([("s", pa.struct([("x", pa.int64()), ("y", pa.float32())]))])
    with pytest.raises(SchemaError, match=r"large numbers would become infinite .*'s\.y'"):
        numparq.to_parquet(table, schema=schema)


def test_dicts_have_no_values_for_two_fields_of_one_name():
    twice = pa.struct([("a", pa.int64()), ("a", pa.int64())])
    for row in ({"a": 1}, (1, 2)):
        with pytest.raises(SchemaError, match="two fields of the name 'a'"):
            numparq.to_parquet(pd.DataFrame({"s": [row]}), schema={"s": twice})


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (pa.list_(pa.field("element", pa.int64(), nullable=False)), [1], [1, None]),
        (pa.struct([pa.field("x", pa.int64(), nullable=False)]), {"x": 1}, {"x": None}),
        (pa.list_(pa.struct([pa.field("x", pa.string(), nullable=False)])), [{"x": "a"}], [{"x": "a"}, {}]),
    ],
)
def test_nulls_in_required_fields_name_the_row(kind, good, bad):
    frame = pd.DataFrame({"s": [good, None, good, bad, good, bad]})
    with pytest.raises(SchemaError, match=r"^row 3: .*null"):
        numparq.to_parquet(frame, schema={"s": kind})


@pytest.mark.parametrize(
    ("good", "bad", "path"),
    [(["x"], ["y", "\ud800"], "s.list.element"), ({"k": "x"}, {"k": "\ud800"}, "s.k"), ([[1]], [[1], [2.5]], "s.")],
)
def test_values_of_lists_and_dicts_name_the_row_of_the_frame(good, bad, path: str):
    schema = {"s": pa.list_(pa.list_(pa.int64()))} if path == "s." else None
    with pytest.raises(SchemaError, match=r"^row 2: (the string '\\ud800' cannot be encoded|2\.5 is not)") as raised:
        numparq.to_parquet(pd.DataFrame({"s": [good, good, bad, good]}), schema=schema)
    assert raised.value.where["column"].startswith(path)


def test_keys_of_dicts_must_be_unicode():
    with pytest.raises(SchemaError, match=r"the dict key 'k\\ud800' cannot be encoded as UTF-8"):
        numparq.to_parquet(pd.DataFrame({"s": [{"k\ud800": 1}]}))
