"""Variants by the specification, recursive: decode, encode, shred and reassemble.

Scalars are pairs of primitive type number and bytes, independent of numparq; `primitive_to_python` converts them.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import struct
import uuid
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

MISSING = object()
_SIZES = {
    0: 0,
    1: 0,
    2: 0,
    3: 1,
    4: 2,
    5: 4,
    6: 8,
    7: 8,
    8: 5,
    9: 9,
    10: 17,
    11: 4,
    12: 8,
    13: 8,
    14: 4,
    17: 8,
    18: 8,
    19: 8,
    20: 16,
}


class InvalidVariant(Exception):
    """The bytes are not a valid variant."""


def number(data: bytes, position: int, width: int) -> int:
    if position < 0 or position + width > len(data):
        raise InvalidVariant("too short")
    return sum(byte << 8 * place for place, byte in enumerate(data[position : position + width]))


# --- decoding ---------------------------------------------------------------------------------------------------------


def names_of(metadata: bytes) -> list[str]:
    head = number(metadata, 0, 1)
    width = 1 + (head >> 6)
    if head % 16 != 1:
        raise InvalidVariant("version")
    count = number(metadata, 1, width)
    if 1 + width * (count + 2) > len(metadata):
        raise InvalidVariant("names")
    ends = [number(metadata, 1 + width * (1 + place), width) for place in range(count + 1)]
    text = metadata[1 + width * (count + 2) :]
    if ends[0] != 0 or ends[-1] != len(text) or ends != sorted(ends):
        raise InvalidVariant("offsets")
    return [decoded_text(text[start:end]) for start, end in itertools.pairwise(ends)]


def decoded_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidVariant("text") from error


def decode(metadata: bytes, value: bytes) -> Any:
    """Decode a variant that fills its bytes; raises InvalidVariant."""
    found, end = _value(value, 0, names_of(metadata))
    if end != len(value):
        raise InvalidVariant("bytes behind the value")
    return found


def _value(data: bytes, start: int, names: list[str]) -> tuple[Any, int]:
    """Decode the value at a position; return it with its end."""
    head = number(data, start, 1)
    kind, rest = head % 4, head // 4
    if kind == 0:
        return _primitive(data, start + 1, rest)
    if kind == 1:
        number(data, start + 1, rest)
        return decoded_text(data[start + 1 : start + 1 + rest]), start + 1 + rest
    offset_width = rest % 4 + 1
    id_width = rest // 4 % 4 + 1 if kind == 2 else 0
    count_width = 4 if rest & (16 if kind == 2 else 4) else 1
    count = number(data, start + 1, count_width)
    ids_at = start + 1 + count_width
    offsets_at = ids_at + count * id_width
    values_at = offsets_at + (count + 1) * offset_width
    if values_at > len(data):
        raise InvalidVariant("offsets")
    offsets = [number(data, offsets_at + place * offset_width, offset_width) for place in range(count + 1)]
    items, covered = [], [values_at]
    for offset in offsets[:-1]:
        item, end = _value(data, values_at + offset, names)
        items.append(item)
        covered += [values_at + offset, end]
    covered.append(values_at + offsets[-1])
    covered.sort()  # each value begins where another one has ended
    if any(first != second for first, second in zip(covered[::2], covered[1::2], strict=True)):
        raise InvalidVariant("gaps or overlaps")
    if kind == 3:
        return items, values_at + offsets[-1]
    ids = [number(data, ids_at + place * id_width, id_width) for place in range(count)]
    if any(key >= len(names) for key in ids):
        raise InvalidVariant("field id")
    keys = [names[key] for key in ids]
    if len(set(keys)) != count:
        raise InvalidVariant("two fields of a name")
    return dict(zip(keys, items, strict=True)), values_at + offsets[-1]


def _primitive(data: bytes, start: int, kind: int) -> tuple[Any, int]:
    if kind in (15, 16):
        size = number(data, start, 4)
        start += 4
    elif kind in _SIZES:
        size = _SIZES[kind]
    else:
        raise InvalidVariant("primitive type")
    if start + size > len(data):
        raise InvalidVariant("too short")
    return primitive_to_python(kind, data[start : start + size]), start + size


def primitive_to_python(kind: int, data: bytes) -> Any:
    """Return the Python value of a primitive."""
    signed = int.from_bytes(data, "little", signed=True)
    if kind in (0, 1, 2):
        return (None, True, False)[kind]
    if kind in (7, 14):
        return struct.unpack("<d" if kind == 7 else "<f", data)[0]
    if kind in (8, 9, 10):
        if data[0] > 38:
            raise InvalidVariant("scale")
        with decimal.localcontext(prec=100):
            return decimal.Decimal(int.from_bytes(data[1:], "little", signed=True)).scaleb(-data[0])
    if kind in (12, 13, 18, 19):
        return to_datetime(signed, "us" if kind < 14 else "ns", kind in (12, 18))
    if kind == 11:
        try:
            return datetime.date(1970, 1, 1) + datetime.timedelta(days=signed)
        except OverflowError:
            return np.datetime64(signed, "D")
    if kind == 17:
        midnight = datetime.datetime(2000, 1, 1)
        inside = 0 <= signed < 86_400_000_000
        return (midnight + datetime.timedelta(microseconds=signed)).time() if inside else np.timedelta64(signed, "us")
    return {15: lambda: data, 16: lambda: decoded_text(data), 20: lambda: uuid.UUID(data.hex())}.get(
        kind, lambda: signed
    )()


def to_datetime(count: int, unit: str, utc: bool) -> Any:
    if unit == "ns":
        naive = pd.Timestamp(np.datetime64(count, "ns"))
        return naive.tz_localize("UTC") if utc else naive
    seconds, fraction = divmod(count, 1_000_000)
    try:
        whole = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds, microseconds=fraction)
    except OverflowError:
        return np.datetime64(count, "us")
    return whole.replace(tzinfo=datetime.UTC) if utc else whole


# --- encoding, as wide as may be -----------------------------------------------------------------------------------


class TypedScalar(NamedTuple):
    """A scalar of a primitive type, as bytes."""

    kind: int
    data: bytes

    @property
    def encoded(self) -> bytes:
        size = struct.pack("<I", len(self.data)) if self.kind in (15, 16) else b""
        return bytes([self.kind * 4]) + size + self.data

    @property
    def value(self) -> Any:
        return primitive_to_python(self.kind, self.data)


def encode(value: Any, ids: dict[str, int], backwards: bool = False) -> bytes:
    """Encode scalars, lists and dicts with four-byte sizes, field values backwards if asked."""
    if isinstance(value, TypedScalar):
        return value.encoded
    if isinstance(value, list):
        parts = [encode(item, ids, backwards) for item in value]
        ends = np.cumsum([0, *map(len, parts)]).tolist()
        return struct.pack(f"<BI{len(ends)}I", 3 | 3 << 2 | 1 << 4, len(parts), *ends) + b"".join(parts)
    keys = sorted(value, key=lambda key: key.encode())
    parts = [encode(value[key], ids, backwards) for key in keys]
    offsets, body = [0] * len(parts), b""
    for place in reversed(range(len(parts))) if backwards else range(len(parts)):
        offsets[place] = len(body)
        body += parts[place]
    head = struct.pack("<BI", 2 | 3 << 2 | 3 << 4 | 1 << 6, len(parts))
    return head + struct.pack(f"<{2 * len(parts) + 1}I", *(ids[key] for key in keys), *offsets, len(body)) + body


def metadata(names: list[str], width: int = 4) -> bytes:
    text = [name.encode() for name in names]
    ends = np.cumsum([0, *map(len, text)]).tolist()
    numbers = b"".join(item.to_bytes(width, "little") for item in [len(text), *ends])
    return bytes([1 | (width - 1) << 6]) + numbers + b"".join(text)


# --- shredding: a schema is None, a (kind, row of a typed leaf), ["list", schema] or {name: schema} ------------------


def shred(value: Any, schema: Any, ids: dict[str, int]) -> dict[str, Any]:
    """Return the fields value and typed_value in the form that to_parquet takes."""
    if value is MISSING:
        return {"value": None, "typed_value": None}
    if isinstance(schema, dict) and isinstance(value, dict):
        rest = {name: item for name, item in value.items() if name not in schema}
        typed = {name: shred(value.get(name, MISSING), inner, ids) for name, inner in schema.items()}
        return {"value": encode(rest, ids) if rest else None, "typed_value": typed}
    if isinstance(schema, list) and isinstance(value, list):
        return {"value": None, "typed_value": [shred(item, schema[0], ids) for item in value]}
    if (
        isinstance(schema, int)
        and isinstance(value, TypedScalar)
        and value.kind in ({1, 2} if schema == 1 else {schema})
    ):
        return {"value": None, "typed_value": value.value}
    return {"value": encode(value, ids), "typed_value": None}


def to_python(value: Any) -> Any:
    """Return the Python value of scalars, lists and dicts."""
    if isinstance(value, TypedScalar):
        return value.value
    if isinstance(value, list):
        return [to_python(item) for item in value]
    return {name: to_python(item) for name, item in value.items()}


def reassemble(names: bytes, value: bytes | None, typed: Any) -> Any:
    """Reassemble a variant from a row's parts as pyarrow returns them (to_pylist); MISSING if absent."""
    if isinstance(typed, dict):
        fields = {name: reassemble(names, part.get("value"), part.get("typed_value")) for name, part in typed.items()}
        found = {name: item for name, item in fields.items() if item is not MISSING}
        if value is None:
            return found
        rest = decode(names, value)
        if not isinstance(rest, dict) or set(rest) & set(typed):
            raise InvalidVariant("conflict")
        return found | rest
    if typed is not None and value is not None:
        raise InvalidVariant("conflict")
    if isinstance(typed, list):
        items = [reassemble(names, part.get("value"), part.get("typed_value")) for part in typed]
        return [None if item is MISSING else item for item in items]
    if typed is not None:
        return typed
    return MISSING if value is None else decode(names, value)
