"""Variants: Hypothesis strategies for values, and columns of them with any shredding."""

from __future__ import annotations

import random

import pandas as pd
from hypothesis import strategies as st

from numparq import to_parquet, variant
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode
from support.oracles import variant as twin


def exact_value(value):
    """Return a key that distinguishes equal values (1, 1.0, True; -0.0, 0.0) and makes NaN equal to itself."""
    if isinstance(value, dict):
        return {key: exact_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [exact_value(item) for item in value]
    return type(value).__name__, repr(value)


SIZES = {kind: size for kind, size in twin._SIZES.items() if kind not in (8, 9, 10)}
numbers = st.sampled_from(sorted(SIZES)).flatmap(
    lambda kind: st.binary(min_size=SIZES[kind], max_size=SIZES[kind]).map(lambda data: twin.TypedScalar(kind, data))
)
decimals = st.sampled_from([(8, 4), (9, 8), (10, 16)]).flatmap(
    lambda form: st.tuples(st.integers(0, 38), st.binary(min_size=form[1], max_size=form[1])).map(
        lambda parts: twin.TypedScalar(form[0], bytes([parts[0]]) + parts[1])
    )
)
texts = st.text(max_size=70).map(lambda text: twin.TypedScalar(16, text.encode()))
blobs = st.binary(max_size=70).map(lambda data: twin.TypedScalar(15, data))
scalars = numbers | decimals | texts | blobs
names = st.sampled_from(["a", "b", "", "é", "\U0001f422", "\uffff", "a.b", "value", "typed_value"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)

NO_TYPE = "a VARIANT cannot be shredded as {}"
VARIANT, LIST, STRING = map(LogicalType, ("VARIANT", "LIST", "STRING"))
EMPTY = b"\x01\x00\x00"  # metadata without names
NAMES = ["value", "é", "b", "", "a", "\U0001f422", "unused", "a.b", "\uffff", "typed_value"]
IDS = {name: number for number, name in enumerate(NAMES)}

# By the primitive type: the physical and logical type, and the length.
LEAVES = {
    1: (BOOLEAN, None, 0),
    3: (INT32, LogicalType("INTEGER", bit_width=8, signed=True), 0),
    4: (INT32, LogicalType("INTEGER", bit_width=16, signed=True), 0),
    5: (INT32, None, 0),
    6: (INT64, None, 0),
    7: (DOUBLE, None, 0),
    14: (FLOAT, None, 0),
    15: (BYTE_ARRAY, None, 0),
    16: (BYTE_ARRAY, STRING, 0),
    20: (FIXED_LEN_BYTE_ARRAY, LogicalType("UUID"), 16),
    11: (INT32, LogicalType("DATE"), 0),
    17: (INT64, LogicalType("TIME", unit="MICROS", utc=False), 0),
    12: (INT64, LogicalType("TIMESTAMP", unit="MICROS", utc=True), 0),
    13: (INT64, LogicalType("TIMESTAMP", unit="MICROS", utc=False), 0),
    18: (INT64, LogicalType("TIMESTAMP", unit="NANOS", utc=True), 0),
    19: (INT64, LogicalType("TIMESTAMP", unit="NANOS", utc=False), 0),
}
schemas = st.recursive(
    st.none() | st.sampled_from(sorted(LEAVES)),
    lambda inner: st.tuples(inner).map(list) | st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3),
    max_leaves=5,
)


def node_of(schema, name="typed_value"):
    """Return the schema node of a ``typed_value``."""
    if isinstance(schema, int):
        physical, logical, length = LEAVES[schema]
        return SchemaNode(name, OPTIONAL, physical, length, logical)
    if isinstance(schema, list):
        element = SchemaNode("element", REQUIRED, children=parts_of(schema[0]))
        return SchemaNode(name, OPTIONAL, None, 0, LIST, (SchemaNode("list", REPEATED, children=(element,)),))
    return SchemaNode(
        name,
        OPTIONAL,
        children=tuple(SchemaNode(key, REQUIRED, children=parts_of(inner)) for key, inner in schema.items()),
    )


def parts_of(schema):
    value = SchemaNode("value", OPTIONAL, BYTE_ARRAY)
    return (value,) if schema is None else (value, node_of(schema))


METADATA = SchemaNode("metadata", REQUIRED, BYTE_ARRAY)


def variant_node(schema, name="v", repetition=OPTIONAL):
    return SchemaNode(name, repetition, None, 0, VARIANT, (METADATA, *parts_of(schema)))


def nested_file():
    """Write lists of variants shredded as objects, beside a number."""
    random.seed(5)
    lists = []
    for number in range(40):
        items = [{"a": number, "b": [place]} if place % 3 else place for place in range(random.randrange(4))]
        lists.append(None if number % 7 == 0 else items)
    metadata = twin.metadata(["a", "b"])

    def stored(item):
        if isinstance(item, int):
            return {"metadata": metadata, "value": variant.encode(item)[1], "typed_value": None}
        rest = twin.encode({"b": [twin.TypedScalar(3, bytes([item["b"][0]]))]}, {"b": 1})
        return {"metadata": metadata, "value": rest, "typed_value": {"a": {"value": None, "typed_value": item["a"]}}}

    rows = [None if items is None else [None if item == 0 else stored(item) for item in items] for items in lists]
    element = variant_node({"a": 6}, "element")
    node = SchemaNode("l", OPTIONAL, None, 0, LIST, (SchemaNode("list", REPEATED, children=(element,)),))
    frame = pd.DataFrame({"n": range(40), "l": pd.Series(rows, dtype=object)})
    data = to_parquet(frame, schema={"l": node}, row_group_size=7)
    return data, [None if items is None else [None if item == 0 else item for item in items] for items in lists]
