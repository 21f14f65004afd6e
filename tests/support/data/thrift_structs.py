"""Hypothesis strategies for random structs of the IDL, and for unknown fields."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from support.oracles import thrift as twin
from support.thrift_definition import thrift_module

IDL = thrift_module()
KNOWN = {kind.__name__: kind for sort in ("structs", "unions") for kind in IDL.__thrift_meta__[sort]}
UNIONS = set(IDL.__thrift_meta__["unions"])
WITH_FIELDS = sorted(name for name, kind in KNOWN.items() if kind.thrift_spec)

_NUMBERS = {3: 8, 6: 16, 8: 32, 10: 64}


def values(code: int, about: list, depth: int = 0) -> st.SearchStrategy:
    """Return a strategy for values of an IDL field; enums may have unknown values."""
    if code == 12:
        return structs(about[0], depth + 1)
    if code == 15:
        inner = about[0] if isinstance(about[0], tuple) else (about[0],)
        return st.lists(values(inner[0], list(inner[1:]), depth + 1), max_size=18 if inner[0] != 12 else 2)
    if code in _NUMBERS:
        edge = 1 << _NUMBERS[code] - 1
        return st.one_of(st.integers(-70, 70), st.integers(-edge, edge - 1), st.sampled_from([-edge, edge - 1]))
    return {2: st.booleans(), 4: st.floats(allow_nan=False), 11: st.text(max_size=9), 18: st.binary(max_size=200)}[code]


def structs(kind: type, depth: int = 0) -> st.SearchStrategy:
    """Return a strategy for objects of an IDL class; unions have at most one field."""
    spec = [
        (name, values(code, about, depth), required) for _, (code, name, *about, required) in kind.thrift_spec.items()
    ]
    if kind in UNIONS:
        return st.one_of(st.just(kind()), *(value.map(lambda v, n=name: kind(**{n: v})) for name, value, _ in spec))
    fields = {name: value if required else st.one_of(st.none(), value) for name, value, required in spec}
    return st.fixed_dictionaries(fields).map(lambda drawn: kind(**drawn))


ANYTHING = st.deferred(lambda: st.one_of(*(st.tuples(st.just(kind), values) for kind, values in WIRE_VALUES.items())))
SCALARS = {
    twin.TRUE: st.booleans(),
    twin.I8: st.integers(-128, 127),
    twin.I16: st.integers(-(1 << 15), (1 << 15) - 1),
    twin.I32: st.integers(-(1 << 31), (1 << 31) - 1),
    twin.I64: st.integers(-(1 << 63), (1 << 63) - 1),
    twin.DOUBLE: st.floats(allow_nan=False),
    twin.BINARY: st.binary(max_size=150),
    twin.UUID: st.binary(min_size=16, max_size=16),
}


def lists_of(kind: int) -> st.SearchStrategy:
    return st.lists(WIRE_VALUES[kind], max_size=17 if kind in SCALARS else 2)


def maps(kinds: tuple[int, int]) -> st.SearchStrategy:
    pairs = st.lists(st.tuples(WIRE_VALUES[kinds[0]], WIRE_VALUES[kinds[1]]), max_size=3)
    return st.tuples(st.just(kinds[0]), st.just(kinds[1]), pairs)


LISTS = st.deferred(
    lambda: st.sampled_from(sorted(WIRE_VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), lists_of(kind)))
)
FIELD_IDS = st.one_of(st.integers(20, 62), st.just(32767), st.integers(-(1 << 15), (1 << 15) - 1))
WIRE_VALUES: dict[int, st.SearchStrategy] = {
    **SCALARS,
    twin.LIST: LISTS,
    twin.SET: LISTS,
    twin.MAP: st.deferred(
        lambda: st.tuples(st.sampled_from(sorted(SCALARS)), st.sampled_from(sorted(WIRE_VALUES))).flatmap(maps)
    ),
    twin.STRUCT: st.deferred(lambda: st.lists(st.tuples(FIELD_IDS, ANYTHING).map(lambda f: (f[0], *f[1])), max_size=3)),
}
UNKNOWN = st.tuples(FIELD_IDS, ANYTHING).map(lambda field: (field[0], *field[1]))


def with_unknown_fields(fields: list, unknown: list, rng: random.Random, inside: bool) -> list:
    """Insert unknown fields between those of a struct and of its nested structs."""
    out = []
    for field_id, kind, value in fields:
        if inside and kind == twin.STRUCT and value:
            value = with_unknown_fields(value, unknown, rng, inside)
        out.append((field_id, kind, value))
        if unknown and rng.random() < 0.5:
            out.append(rng.choice(unknown))
    return out
