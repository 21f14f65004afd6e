"""Nested arrays to levels: against the definition, over random schemas and arrays, by both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.column.leaf_values import LeafValues
from numparq.column.nested import shred as nested_shred
from numparq.column.nested.shred import UnshreddedArray, UnshreddedLeaf, UnshreddedList, UnshreddedStruct, shred
from numparq.errors import SchemaError
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode, leaf_columns
from numparq.types.arrow_fields import is_list_element
from support.kernels.engines import ENGINES
from support.kernels.strategies import SEEDS
from support.oracles.nested import shred_rows

LIST, MAP = LogicalType("LIST"), LogicalType("MAP")


@pytest.fixture(params=ENGINES, ids=repr)
def engine(request, monkeypatch):
    monkeypatch.setattr(nested_shred, "nested_encode_kernels", request.param)
    return request.param


def leaf(name: str, repetition: int = OPTIONAL) -> SchemaNode:
    return SchemaNode(name, repetition, INT32)


def listed(name: str, element: SchemaNode, repetition: int = OPTIONAL) -> SchemaNode:
    return SchemaNode(name, repetition, logical=LIST, children=(SchemaNode("list", REPEATED, children=(element,)),))


def mapped(name: str, key: SchemaNode, value: SchemaNode, repetition: int = OPTIONAL) -> SchemaNode:
    return SchemaNode(
        name, repetition, logical=MAP, children=(SchemaNode("key_value", REPEATED, children=(key, value)),)
    )


def random_node(rng: np.random.Generator, name: str, depth: int) -> SchemaNode:
    repetition = int(rng.choice([REQUIRED, OPTIONAL, OPTIONAL]))
    kind = rng.choice(["leaf", "list", "map", "struct", "repeated"]) if depth else rng.choice(["leaf", "repeated leaf"])
    if kind == "list" and rng.random() < 0.2:  # the legacy form of two levels
        return SchemaNode(name, repetition, logical=LIST, children=(SchemaNode("array", REPEATED, INT32),))
    if kind == "list":
        return listed(name, random_node(rng, "element", depth - 1), repetition)
    if kind == "map":
        return mapped(name, leaf("key", REQUIRED), random_node(rng, "value", depth - 1), repetition)
    if kind in ("struct", "repeated"):
        count = int(rng.integers(1, 4))
        children = tuple(random_node(rng, f"field{i}", depth - 1) for i in range(count))
        return SchemaNode(name, REPEATED if kind == "repeated" else repetition, children=children)
    return leaf(name, REPEATED if kind == "repeated leaf" else repetition)


def random_array(rng: np.random.Generator, node: SchemaNode, length: int) -> UnshreddedArray:
    """Return a random array, with values under nulls too."""
    if node.repetition == REPEATED:
        return random_lists(rng, node, node, length, None)
    validity = rng.integers(0, 4, length, "u1").clip(0, 1) if node.repetition == OPTIONAL else None
    if validity is not None and rng.random() < 0.2:
        validity = None
    if node.logical in (LIST, MAP):
        return random_lists(rng, node, node.children[0], length, validity)
    return random_content(rng, node, length, validity)


def random_content(
    rng: np.random.Generator, node: SchemaNode, length: int, validity: np.ndarray | None
) -> UnshreddedArray:
    if node.physical is not None:
        return UnshreddedLeaf(length, LeafValues(rng.integers(0, 1 << 30, length, "i4"), validity=validity))
    return UnshreddedStruct(length, validity, tuple(random_array(rng, child, length) for child in node.children))


def random_lists(
    rng: np.random.Generator, node: SchemaNode, repeated: SchemaNode, length: int, validity: np.ndarray | None
) -> UnshreddedList:
    sizes = rng.choice([0, 0, 1, 1, 2, 3, 9], length)
    first = int(rng.integers(0, 3))
    offsets = first + np.append(0, np.cumsum(sizes)).astype(np.int64)
    total = int(offsets[-1]) + int(rng.integers(0, 3))
    if is_list_element(node, repeated):
        return UnshreddedList(length, validity, offsets, (random_content(rng, repeated, total, None),))
    return UnshreddedList(
        length, validity, offsets, tuple(random_array(rng, child, total) for child in repeated.children)
    )


def value(node: SchemaNode, array: UnshreddedArray, place: int) -> Any:
    """Return the value at an index, as `support.oracles.nested` has it."""
    validity = array.values.validity if isinstance(array, UnshreddedLeaf) else array.validity
    if validity is not None and not validity[place]:
        return None
    if isinstance(array, UnshreddedLeaf):
        return int(array.values.values[place])
    if isinstance(array, UnshreddedStruct):
        return {c.name: value(c, child, place) for c, child in zip(node.children, array.children, strict=True)}
    places = range(int(array.offsets[place]), int(array.offsets[place + 1]))
    repeated = node if node.repetition == REPEATED else node.children[0]
    if is_list_element(node, repeated):
        return [value(repeated, array.children[0], item) for item in places]
    many = [
        [value(c, child, item) for c, child in zip(repeated.children, array.children, strict=True)] for item in places
    ]
    if node.logical == LIST:
        return [items[0] for items in many]
    return [tuple(items) for items in many]


def compare(node: SchemaNode, array: UnshreddedArray) -> None:
    expected = shred_rows(node, [value(node, array, row) for row in range(array.length)])
    made, leaves = shred(node, array), leaf_columns([node])
    assert len(made) == len(expected) == len(leaves)
    for about, got, want in zip(leaves, made, expected, strict=True):
        deepest = about.max_definition_level
        assert levels(got) == (
            [d for d, _, _ in want] if deepest else None,
            [r for _, r, _ in want] if about.max_repetition_level else None,
        )
        assert got.validity is None
        assert got.values.tolist() == [item for d, _, item in want if d == deepest]


def levels(values: LeafValues) -> tuple[list | None, list | None]:
    return tuple(
        None if some is None else some.tolist() for some in (values.definition_levels, values.repetition_levels)
    )


@pytest.mark.parametrize("seed", range(40))
def test_random_schemas(engine, seed):
    rng = np.random.default_rng(seed)
    for _ in range(engine.size(6)):
        node = random_node(rng, "column", int(rng.integers(0, 5)))
        compare(node, random_array(rng, node, int(rng.choice([0, 1, 2, 20]))))


def int_lists(lists: list, validity: list | None = None) -> UnshreddedList:
    flat = [item for items in lists for item in items or ()]
    present = np.array([item is not None for item in flat], np.uint8)
    values = LeafValues(np.array([item or 0 for item in flat], np.int32), validity=None if all(present) else present)
    valid = np.array([items is not None for items in lists], np.uint8)
    offsets = np.append(0, np.cumsum([len(items or ()) for items in lists])).astype(np.int64)
    return UnshreddedList(len(lists), valid, offsets, (UnshreddedLeaf(len(flat), values),))


@pytest.mark.usefixtures("engine")
def test_array_of_arrays_of_the_impala_document():
    """Every definition and repetition level of array<array<int>>."""
    node = listed("array_col", listed("item", leaf("item")))
    inner = int_lists([None, [], [None], [1, None], [2], [3]])
    rows = UnshreddedList(7, np.array([0, 1, 1, 1, 1, 1, 1], np.uint8), np.array([0, 0, 0, 1, 2, 3, 5, 6]), (inner,))
    (got,) = shred(node, rows)
    assert levels(got) == ([0, 1, 2, 3, 4, 5, 4, 5, 5], [0, 0, 0, 0, 0, 0, 2, 1, 0])
    assert got.values.tolist() == [1, 2, 3]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("required", [False, True])
def test_optional_groups_of_the_impala_document(required):
    """a.b.c: the level says where the first null is; a required b adds none."""
    b = SchemaNode("b", REQUIRED if required else OPTIONAL, children=(leaf("c"),))
    node = SchemaNode("a", children=(b,))
    c = UnshreddedLeaf(4, LeafValues(np.array([9, 9, 9, 7], np.int32), validity=np.array([1, 1, 0, 1], np.uint8)))
    inner = UnshreddedStruct(4, None if required else np.array([1, 0, 1, 1], np.uint8), (c,))
    (got,) = shred(node, UnshreddedStruct(4, np.array([0, 1, 1, 1], np.uint8), (inner,)))
    assert levels(got) == ([0, 2, 1, 2] if required else [0, 1, 2, 3], None)
    assert got.values.tolist() == ([9, 7] if required else [7])


@pytest.mark.usefixtures("engine")
def test_address_book_of_the_impala_document():
    """contacts.phoneNumber and contacts.name, in repeated groups without a LIST."""
    name, phone = SchemaNode("name", REQUIRED, BYTE_ARRAY), SchemaNode("phoneNumber", OPTIONAL, BYTE_ARRAY)
    node = SchemaNode("contacts", REPEATED, children=(name, phone))
    data = np.frombuffer(b"Dmitriy RyaboyChris Aniszczyk555 987 6543", np.uint8)
    names = LeafValues(data, np.array([0, 14]), np.array([14, 29]))
    phones = LeafValues(data, np.array([29, 0]), np.array([41, 0]), validity=np.array([1, 0], np.uint8))
    contacts = UnshreddedStruct(2, None, (UnshreddedLeaf(2, names), UnshreddedLeaf(2, phones)))
    rows = UnshreddedList(2, None, np.array([0, 2, 2]), (contacts,))
    shredded_names, shredded_phones = shred(node, rows)
    assert levels(shredded_phones) == ([2, 1, 0], [0, 1, 0])
    assert texts(shredded_phones) == [b"555 987 6543"]
    assert levels(shredded_names) == ([1, 1, 0], [0, 1, 0])
    assert texts(shredded_names) == [b"Dmitriy Ryaboy", b"Chris Aniszczyk"]


def texts(values: LeafValues) -> list[bytes]:
    return [values.values[a:b].tobytes() for a, b in zip(values.starts, values.ends, strict=True)]


@pytest.mark.usefixtures("engine")
def test_contiguous_values_are_views():
    numbers = np.arange(10, dtype=np.int32)
    lists = UnshreddedList(2, None, np.array([2, 4, 7]), (UnshreddedLeaf(10, LeafValues(numbers)),))
    (got,) = shred(listed("c", leaf("element")), lists)
    assert np.shares_memory(got.values, numbers)
    assert got.values.tolist() == [2, 3, 4, 5, 6]


@pytest.mark.usefixtures("engine")
def test_values_under_nulls_are_dropped():
    offsets, validity = np.array([0, 1, 3]), np.array([1, 0, 1], np.uint8)
    codes = UnshreddedLeaf(
        3, LeafValues(np.array([5, 6], np.int32), codes=np.array([1, 0, 0], np.int32), validity=validity)
    )
    (got,) = shred(listed("c", leaf("element")), UnshreddedList(2, None, offsets, (codes,)))
    assert (got.codes.tolist(), got.values.tolist(), levels(got)[0]) == ([1, 0], [5, 6], [3, 2, 3])
    wide = UnshreddedLeaf(3, LeafValues(np.frombuffer(b"aabbcc", np.uint8), validity=validity))
    element = SchemaNode("element", OPTIONAL, FIXED_LEN_BYTE_ARRAY, 2)
    (got,) = shred(listed("c", element), UnshreddedList(2, None, offsets, (wide,)))
    assert got.values.tobytes() == b"aacc"
    none = UnshreddedLeaf(3, LeafValues(np.zeros(0, np.uint8), validity=validity))
    (got,) = shred(
        listed("c", SchemaNode("e", OPTIONAL, FIXED_LEN_BYTE_ARRAY, 0)), UnshreddedList(2, None, offsets, (none,))
    )
    assert levels(got)[0] == [3, 2, 3]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("node", "where"),
    [
        (listed("c", leaf("element", REQUIRED)), "c.list.element"),
        (listed("c", leaf("element"), REQUIRED), "c.list"),
    ],
)
def test_null_in_a_required_field_is_refused(node, where):
    with pytest.raises(SchemaError, match="null") as caught:
        shred(node, int_lists([[1], None] if where == "c.list" else [[None]]))
    assert caught.value.where == {"column": where}
    group = SchemaNode("g", REQUIRED, children=(leaf("x"),))
    array = UnshreddedStruct(1, np.zeros(1, np.uint8), (UnshreddedLeaf(1, LeafValues(np.zeros(1, np.int32))),))
    with pytest.raises(SchemaError, match="null"):
        shred(group, array)


@pytest.mark.usefixtures("engine")
def test_struct_without_fields_is_refused():
    with pytest.raises(SchemaError, match="without fields"):
        shred(SchemaNode("c"), UnshreddedStruct(1, None, ()))


@pytest.mark.usefixtures("engine")
def test_level_limit():
    node, array = leaf("x"), UnshreddedLeaf(1, LeafValues(np.zeros(1, np.int32)))
    for _ in range(254):
        node, array = SchemaNode("g", children=(node,)), UnshreddedStruct(1, None, (array,))
    (got,) = shred(node, array)
    assert levels(got) == ([255], None)
    with pytest.raises(SchemaError, match="levels"):
        shred(SchemaNode("g", children=(node,)), UnshreddedStruct(1, None, (array,)))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("offsets", [[0, 4], [2, 1], [-1, 1]])
def test_list_offsets_outside_the_elements(offsets):
    """Unvalidated Arrow data may have such offsets; nothing is read there."""
    lists = UnshreddedList(1, None, np.array(offsets), (UnshreddedLeaf(3, LeafValues(np.zeros(3, np.int32))),))
    with pytest.raises(SchemaError, match="length"):
        shred(listed("c", leaf("element")), lists)


@given(seed=SEEDS, depth=st.integers(0, 4), length=st.integers(0, 9))
def test_any_levels(seed, depth, length):
    rng = np.random.default_rng(seed)
    node = random_node(rng, "column", depth)
    array = random_array(rng, node, length)
    for engine in ENGINES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(nested_shred, "nested_encode_kernels", engine)
            compare(node, array)
