"""Page bounds, byte counts and level histograms: kernels, through their callers, against the oracle."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.format import page_bounds, size_statistics
from numparq.format import page_bounds as statistics_pages
from numparq.format.column_order import leaf_order
from numparq.format.logical_type import LogicalType
from numparq.format.page_bounds import compute_page_bounds
from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32
from numparq.format.schema import Leaf
from numparq.format.schema_node import SchemaNode
from support.kernels.engines import ENGINES
from support.kernels.strategies import STRINGS
from support.oracles import statistics as oracle


@dataclass(frozen=True)
class Case:
    """A column, and the kind of its order."""

    physical: int
    kind: str
    logical: LogicalType | None = None
    length: int = 0
    column_order: str = "type"

    def __repr__(self) -> str:
        return f"{self.kind}-{self.physical}-{self.length}-{self.column_order}"

    @property
    def order(self):
        return leaf_order(SchemaNode("a", 1, self.physical, self.length, self.logical), self.column_order)


def unsigned(bits):
    return LogicalType("INTEGER", bit_width=bits, signed=False)


DECIMAL = LogicalType("DECIMAL", precision=9, scale=2)
CASES = [
    Case(0, "boolean"),
    Case(1, "signed"),
    Case(2, "signed"),
    Case(1, "unsigned", unsigned(32)),
    Case(2, "unsigned", unsigned(64)),
    Case(1, "signed", DECIMAL),
    Case(4, "float"),
    Case(5, "float"),
    Case(7, "float", LogicalType("FLOAT16"), 2),
    Case(4, "float", None, 0, "ieee754"),
    Case(5, "float", None, 0, "ieee754"),
    Case(7, "float", LogicalType("FLOAT16"), 2, "ieee754"),
    Case(6, "bytes"),
    Case(6, "decimal", DECIMAL),
    *(Case(7, "bytes", None, n) for n in (1, 7, 8, 9, 16, 33)),
    *(Case(7, "decimal", DECIMAL, n) for n in (1, 4, 8, 16, 17)),
]
DTYPES = {0: "u1", 1: "i4", 2: "i8", 4: "f4", 5: "f8", 7: "u1"}
NUMBERS = {
    "float": ("0", "-0", "1.5", "-1.5", "inf", "-inf", "nan"),
    "signed": (0, -1, 1, 1 << 31, (1 << 31) - 1, 1 << 63, (1 << 63) - 1),
}


def edge_values(case: Case) -> list[bytes]:
    """Return values at the edges of the column's order."""
    width = case.order.width
    if case.kind == "boolean":
        return [b"\0", b"\1"]
    if case.kind == "float":
        code = oracle.FORMATS["float", width]
        found = [struct.pack(code, float(text)) for text in NUMBERS["float"]]
        negative_nan = bytes([*found[-1][:-1], found[-1][-1] | 0x80])
        nearest_nans = [b"\1" + infinity[1:] for infinity in found[4:6]]
        return [*found, negative_nan, *nearest_nans, b"\1" + bytes(width - 1), b"\xff" * width]
    if case.kind in ("signed", "unsigned"):
        return [(value % (1 << 8 * width)).to_bytes(width, "little") for value in NUMBERS["signed"]]
    if width:
        return [bytes(width), b"\xff" * width, b"\x80" + bytes(width - 1), b"\x7f" + b"\xff" * (width - 1)]
    front = b"in common"
    short = [b"", b"a", b"a\0", b"\xff", b"\xff" * 9, b"\x80", bytes(9), bytes(8), b"\0\x80", b"\xff\x7f", b"\0\0\x7f"]
    return [*short, front, front * 2, front * 2 + b"\0", front * 3, front * 2 + b"12345678", front * 2 + b"12345679"]


def leaf_arrays(case: Case, values: list[bytes]) -> dict[str, np.ndarray]:
    """Return values as arguments of `compute_page_bounds`."""
    data = np.frombuffer(b"".join(values), np.uint8)
    if case.physical != BYTE_ARRAY:
        return {"values": data.view(DTYPES[case.physical])}
    ends = np.cumsum([len(value) for value in values], dtype=np.int64)
    return {"values": data, "starts": ends - [len(value) for value in values], "ends": ends}


def compare(case: Case, values: list[bytes], ends: list[int], codes: list[int] | None = None) -> None:
    """Compare the bounds of pages that end at `ends` with the oracle's."""
    bounds = np.array([0, *ends], np.int64)
    coded = None if codes is None else np.array(codes, np.int32)
    columns = leaf_arrays(case, values)
    found = compute_page_bounds(case.order, columns.pop("values"), bounds, **columns, codes=coded)
    whole = values if codes is None else [values[code] for code in codes]
    expected = [
        oracle.bounds(case.kind, case.column_order == "ieee754", whole[start:stop]) for start, stop in pairwise(bounds)
    ]
    assert found.num_values == np.diff(bounds).tolist()
    for mine, side in ((found.min_values, 0), (found.max_values, 1)):
        if case.kind == "decimal":  # a decimal has many encodings
            same = [None if value is None else oracle.sort_value("decimal", value) for value in mine]
            assert same == [
                None if page[side] is None else oracle.sort_value("decimal", page[side]) for page in expected
            ]
        else:
            assert mine == [page[side] for page in expected]
    assert found.nan_counts == ([page[2] for page in expected] if case.kind == "float" else None)


@pytest.fixture(params=ENGINES, ids=repr)
def engine(request, monkeypatch):
    for module in (page_bounds, size_statistics):
        monkeypatch.setattr(module, "statistics_kernels", request.param)
    return request.param


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_random_pages(engine, case):
    rng = np.random.default_rng(CASES.index(case))
    edges = edge_values(case)
    for _ in range(engine.size(20, 3)):
        count = int(rng.integers(0, engine.size(300)))
        values = [
            edges[rng.integers(len(edges))]
            if rng.random() < 0.2 or case.kind == "boolean"
            else rng.bytes(case.order.width or int(rng.integers(0, 30)))
            for _ in range(count)
        ]
        ends = sorted(rng.integers(0, count + 1, int(rng.integers(0, 6))).tolist())
        compare(case, values, ends)
        codes = rng.integers(0, count, engine.size(500)).tolist() if count else []
        compare(case, values, [0, len(codes) // 3, len(codes) // 2, len(codes)], codes)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_every_pair_of_edge_values(engine, case):
    edges = edge_values(case)
    pairs = [value for one in edges for other in edges for value in (one, other)]
    compare(case, pairs, list(range(2, len(pairs) + 1, 2)))
    compare(case, edges, [len(edges)])
    compare(case, edges[::-1], [0, 0, 1, len(edges)])


@given(data=st.data())
def test_any_bytes(data):
    """Binary values of few letters, so that they share prefixes."""
    case = data.draw(st.sampled_from([case for case in CASES if case.physical in (6, 7) and case.kind != "float"]))
    length = case.order.width
    letters = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])
    front = data.draw(st.lists(letters, max_size=24).map(bytes), "front")[: max(length - 1, 0) if length else 24]
    least, most = (length - len(front), length - len(front)) if length else (0, 24)
    values = data.draw(st.lists(st.lists(letters, min_size=least, max_size=most).map(bytes), max_size=9), "values")
    values = [front + value for value in values]
    compare(case, values, [len(values) // 2, len(values)])


@pytest.mark.parametrize(("physical", "kind", "length"), [(6, "bytes", 0), (7, "bytes", 17), (7, "decimal", 17)])
def test_values_with_another_prefix_than_the_bounds(engine, physical, kind, length):
    """Both bounds share eight bytes or more; the other values only end as if they lay between them."""
    case = Case(physical, kind, DECIMAL if kind == "decimal" else None, length)
    for place in range(16):
        front = b"\x40" * 16
        less, more = (front[:place] + byte + front[place + 1 :] for byte in (b"\x30", b"\x50"))
        for shared in (front, front[:8]):
            parts = ((front, b"a"), (front, b"c"), (less, b"b"), (more, b"b"))
            values = [(one[: len(shared)] + end).ljust(length, b"x") for one, end in parts]
            for order in ([0, 1, 2], [0, 1, 3], [1, 0, 2], [1, 0, 3], [0, 1, 2, 3]):
                compare(case, [values[number] for number in order], [len(order)])


def test_values_that_differ_from_a_bound_after_its_first_word(engine):
    """Longer or shorter values are outside the bounds only by bytes after the first eight."""
    for shared in (b"", b"in front"):
        low, high = shared + b"b" * 9, shared + b"m" * 8
        for others in ([high + b"m"], [low[:-1]], [low[:-1] + b"a"], [high + b"\0", low[:-1], high + b"\0\0"]):
            for values in ([low, high, *others], [high, low, *others]):
                compare(Case(6, "bytes"), values, [len(values)])
    for others in ([b"m" * 8 + b"n"], [b"b" * 8 + b"a"]):
        for case in (Case(7, "bytes", None, 9), Case(7, "decimal", DECIMAL, 9)):
            compare(case, [b"b" * 9, b"m" * 9, *others], [3])


def test_bound_replaced_by_one_with_another_prefix(engine):
    """Later values are compared with the prefix and the word of the new bound."""
    for low, high, new, last in ((b"Fb", b"Fm", b"Ez", b"Ec"), (b"Fb", b"Fm", b"Gc", b"Gl")):
        values = [value[:1] * 8 + value[1:] for value in (low, high, new, last)]
        compare(Case(6, "bytes"), values, [4])
        compare(Case(7, "bytes", None, 9), values, [4])


def test_decimals_of_different_lengths(engine):
    """The bytes of longer decimals lie between those of shorter ones, but their numbers do not."""
    for values in ([1, 3, 2 << 8], [1, 3, 2 << 64], [-3, -1, -2 << 8], [-3, -1, -2 << 72], [1 << 64, 3 << 64, 2]):
        stored = [value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True) for value in values]
        compare(Case(6, "decimal", DECIMAL), stored, [3])
        compare(Case(6, "decimal", DECIMAL), stored, [3], [0, 1, 2])


def test_no_reads_after_the_last_value(engine):
    for length in range(18):
        values = [bytes([7] * length), bytes([7] * (length - 1) + [8]) if length else b"", bytes([7] * length)]
        compare(Case(6, "bytes"), values, [3])
        compare(Case(6, "decimal", DECIMAL), values, [3])


def test_page_sizes_and_level_histograms(engine):
    rng = np.random.default_rng(3)
    leaf = Leaf(0, 0, ("a",), BYTE_ARRAY, None, None, 3, 2)
    values = [rng.bytes(int(n)) for n in rng.integers(0, 9, engine.size(200))]
    columns = leaf_arrays(Case(6, "bytes"), values)
    places = {"starts": columns["starts"], "ends": columns["ends"]}
    bounds = np.array([0, 0, len(values) // 2, len(values)], np.int64)
    definition, repetition = rng.integers(0, 4, 500).astype("u1"), rng.integers(0, 3, 500).astype("u1")
    levels = np.array([0, 100, 100, 500], np.int64)
    sizes = size_statistics.compute_page_sizes(
        leaf, bounds, levels, definition=definition, repetition=repetition, **places
    )
    pairs = list(pairwise(bounds))
    assert sizes.byte_array_bytes == [len(b"".join(values[start:stop])) for start, stop in pairs]
    for found, stored_levels, most in (
        (sizes.definition_histograms, definition, 3),
        (sizes.repetition_histograms, repetition, 2),
    ):
        counted = [stored_levels[start:stop].tolist() for start, stop in pairwise(levels)]
        assert found.tolist() == [[page.count(level) for level in range(most + 1)] for page in counted]
    codes = rng.integers(0, len(values), len(values)).astype("i4")
    sizes = size_statistics.compute_page_sizes(leaf, bounds, codes=codes, **places)
    assert sizes.definition_histograms is sizes.repetition_histograms is None
    assert sizes.byte_array_bytes == [sum(len(values[code]) for code in codes[a:b]) for a, b in pairs]


def test_redundant_size_statistics_are_omitted():
    bounds = np.array([0, 2], np.int64)
    levels = np.zeros(2, np.uint8)
    flat = Leaf(0, 0, ("a",), INT32, None, None, 1, 0)
    sizes = size_statistics.compute_page_sizes(flat, bounds, bounds, definition=levels)
    assert sizes == size_statistics.PageSizeStatistics()
    assert size_statistics.size_words(sizes, 0, 1, []) == size_statistics.NO_SIZES
    fixed = Leaf(0, 0, ("a",), FIXED_LEN_BYTE_ARRAY, 4, None, 0, 0)
    assert size_statistics.compute_page_sizes(fixed, bounds) == size_statistics.PageSizeStatistics()


FIXED = [case for case in CASES if case.physical != BYTE_ARRAY and case.kind != "boolean"]


@given(data=st.data(), case=st.sampled_from(FIXED))
def test_any_bounds(data, case):
    width = case.order.width
    value = st.one_of(st.binary(min_size=width, max_size=width), st.sampled_from(edge_values(case)))
    values = data.draw(st.lists(value, max_size=12))
    codes = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20)) if values else []
    for engine in ENGINES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(statistics_pages, "statistics_kernels", engine)
            compare(case, values, [len(values) // 2, len(values)])
            compare(case, values, [len(codes) // 3, len(codes)], codes)


@given(values=STRINGS, levels=st.lists(st.integers(0, 3), max_size=40), data=st.data())
def test_any_page_sizes_and_histograms(values, levels, data):
    ends = np.cumsum([len(value) for value in values], dtype=np.int64)
    codes = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20)) if values else [], np.int32)
    about = Leaf(0, 0, ("a",), BYTE_ARRAY, None, None, 3, 0)
    places = {"starts": ends - np.array([len(value) for value in values], np.int64), "ends": ends}
    at = np.array([0, len(levels) // 3, len(levels)], np.int64)
    for engine in ENGINES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(size_statistics, "statistics_kernels", engine)
            for whole, extra in ((values, {}), ([values[code] for code in codes], {"codes": codes})):
                bounds = np.array([0, len(whole) // 2, len(whole)], np.int64)
                found = size_statistics.compute_page_sizes(
                    about, bounds, at, definition=np.array(levels, np.uint8), **places, **extra
                )
                assert found.byte_array_bytes == [len(b"".join(whole[a:b])) for a, b in pairwise(bounds.tolist())]
                counted = [levels[a:b] for a, b in pairwise(at.tolist())]
                assert found.definition_histograms.tolist() == [
                    [page.count(level) for level in range(4)] for page in counted
                ]
