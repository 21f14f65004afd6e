"""Damage to footer key values: the pandas metadata (JSON) and the Arrow schema (Flatbuffer)."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from support.files.builder import parse_file, with_footer

from .byte_damage import Case, flipped_bytes

_DEEP: Any = []
for _ in range(200):
    _DEEP = [_DEEP, {"name": _DEEP}] if _ < 5 else [_DEEP]

VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1,
    2**31,
    2**62,
    2**70,
    -(2**63),
    0.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    "a\x00b",
    "n" * 3000,
    [],
    {},
    [[]],
    [{}],
    [None],
    _DEEP,
    {"kind": "range", "name": None, "start": 0, "stop": 3, "step": 1},
    {"kind": "range", "name": "\ud800", "start": 3, "stop": 0, "step": -1},
    {"kind": "range", "name": {}, "start": -(2**60), "stop": 2**60, "step": 1},
    "a",
    "b",
    "c",
    "d",
    "e",
    "n",
    "__index_level_1__",
    "int64",
    "uint8",
    "float16",
    "bool",
    "object",
    "str",
    "string",
    "unicode",
    "bytes",
    "date",
    "mixed-integer",
    "decimal",
    "empty",
    "categorical",
    "category",
    "datetime",
    "datetimetz",
    "datetime64[ns]",
    "datetime64[us, UTC]",
    "datetime64[ns, Not/There]",
    "timedelta64[s]",
    "timedelta",
    "period",
    "period[M]",
    "period[",
    "Int64",
    "boolean",
    "Float32",
    "string[pyarrow]",
    "int64[pyarrow]",
    "timestamp[us][pyarrow]",
    "decimal128(3, 1)[pyarrow]",
    "interval[int64, right]",
    "Sparse[int]",
    "complex128",
    "V8",
    "M8",
    "UTC",
    "+99:99",
    "Europe/Paris",
    "('a', 'b')",
    "(" * 3000,
    "-" * 3000 + "1",
    ["a", "b"],
    ["c", "d", "e"],
    [0, 1],
    {"timezone": 5},
    {"timezone": "UTC"},
    "1e400",
    "2020-13-45",
    "9999999999999999999999",
    {"num_categories": -1, "ordered": "x"},
)


def pandas_cases(data: bytes, seed: int, count: int) -> Iterator[Case]:
    """Yield files with 1 to 4 values replaced in the JSON of the ``pandas`` key."""
    whole = parse_file(data)
    body, footer = whole.laid_out()
    pair = next(pair for pair in footer.key_value_metadata if pair.key in ("pandas", b"pandas"))
    document = json.loads(pair.value)
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        changed = copy.deepcopy(document)
        for _ in range(int(rng.integers(1, 5))):
            places = list(_places(changed))
            owner, key = places[int(rng.integers(0, len(places)))]
            value = copy.deepcopy(VALUES[int(rng.integers(0, len(VALUES)))])
            _change(rng, owner, key, value)
        pair.value = json.dumps(changed)
        yield f"seed {seed}, pandas metadata {number}", with_footer(body, footer)


def _places(thing: Any, depth: int = 8) -> Iterator[tuple[Any, Any]]:
    """Yield all members of a document as (list or dict, key)."""
    members = list(thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ())
    for key, value in members:
        yield thing, key
        if depth:
            yield from _places(value, depth - 1)


def _change(rng: np.random.Generator, owner: Any, key: Any, value: Any) -> None:
    kind = rng.random()
    if kind < 0.7:
        owner[key] = value
    elif kind < 0.8:
        del owner[key]
    elif isinstance(owner, list):
        owner.insert(key, copy.deepcopy(owner[key]) if kind < 0.9 else value)
    else:
        owner[str(rng.choice(["name", "field_name", "numpy_type", "metadata", "kind", "step"]))] = value


def arrow_cases(data: bytes, seed: int, count: int) -> Iterator[Case]:
    """Yield files with flipped bytes in the ``ARROW:schema`` Flatbuffer; the footer stays valid."""
    _, footer = parse_file(data).laid_out()
    text = next(pair.value for pair in footer.key_value_metadata if pair.key in ("ARROW:schema", b"ARROW:schema"))
    text = text.encode() if isinstance(text, str) else text
    assert data.count(text) == 1
    for label, schema in flipped_bytes(base64.b64decode(text), seed, 0, count):
        yield f"Arrow schema, {label}", data.replace(text, base64.b64encode(schema))
