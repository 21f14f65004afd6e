"""Value kinds: which values compare across files, whatever type a file stores them in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from numparq.expr.sort_keys import KeyDomain, float_bits, key_domain
from numparq.format.physical_type import INT96, PHYSICAL_NAMES
from numparq.format.schema import Leaf


@dataclass(frozen=True)
class ValueKind:
    """Kind of values that compare with each other, whatever type stores them.

    Attributes
    ----------
    name : str
        ``"int"``, ``"uint64"``, ``"float"``, ``"text"``, ``"decimal(2)"``, ``"timestamp(us, UTC)"`` and the like. Only
        values of kinds with the same name are compared and counted together.
    key_dtype : str
        dtype of keys, which compare as the values do: ``"int64"``, ``"uint64"``, ``"float64"``, or ``"object"`` of ints
        or bytes.
    """

    name: str
    key_dtype: str

    def to_python(self, key: Any) -> Any:
        """Return the Python value of a key; the key itself if Python cannot represent the value."""
        head, _, rest = self.name.partition("(")
        make = _CONVERTERS.get(head)
        key = key.item() if isinstance(key, np.generic) else key
        try:
            return key if make is None else make(key, rest.rstrip(")"))
        except (ValueError, OverflowError):
            return key


@lru_cache(maxsize=1024)
def value_kind(leaf: Leaf) -> ValueKind:
    """Return the kind of a leaf column's values; raise InvalidFileError if its type is invalid."""
    domain = key_domain(leaf)
    name = _kind_name(leaf, domain)
    if domain.kind == "float":
        return ValueKind(name, "float64")
    if domain.kind in ("signed", "boolean") and not name.startswith("decimal"):
        return ValueKind(name, "int64")
    if domain.kind == "unsigned":
        return ValueKind(name, "uint64" if name == "uint64" else "int64")
    return ValueKind(name, "object")


def _kind_name(leaf: Leaf, domain: KeyDomain) -> str:
    kind, arrow = domain.type.kind, domain.type
    if leaf.physical == INT96:
        return "timestamp(ns, INT96)"
    if kind == "int":
        return "uint64" if not arrow.signed and arrow.bit_width == 64 else "int"
    if kind == "decimal":
        return f"decimal({arrow.scale})"
    if kind == "timestamp":
        return f"timestamp({arrow.unit}, UTC)" if arrow.timezone else f"timestamp({arrow.unit})"
    if kind == "time":
        return f"time({arrow.unit})"
    if kind in ("binary", "fixed_size_binary"):
        return "bytes" if leaf.logical is None else f"bytes({leaf.logical.kind})"
    return {"utf8": "text", "enum": "text", "float": "float", "bool": "bool"}.get(kind, kind)


def type_names(leaf: Leaf) -> tuple[str, str]:
    """Return the names of a leaf's physical type and of its logical type (empty: none)."""
    physical = PHYSICAL_NAMES[leaf.physical] + (f"({leaf.type_length})" if leaf.type_length is not None else "")
    return physical, "" if leaf.logical is None else str(leaf.logical)


def keys_to_floats(domain: KeyDomain, keys: np.ndarray) -> np.ndarray:
    """Convert the ordered int64 keys of floats to float64; return other keys unchanged."""
    if domain.kind != "float":
        return keys
    width = domain.width
    bits = [float_bits(key, width) for key in keys.tolist()]
    dtype = {2: "<i2", 4: "<i4", 8: "<i8"}[width]
    return np.array(bits, dtype).view(dtype.replace("i", "f")).astype(np.float64)


# --- keys to Python values --------------------------------------------------------------------------------------------


def _timestamp(key: int, how: str) -> Any:
    unit, _, zone = how.partition(", ")
    if zone == "INT96":
        unit, key = ("ns", key) if abs(key) < 1 << 63 else ("us", key // 1000)
    moment = pd.Timestamp(np.datetime64(key, unit))  # type: ignore[call-overload]
    return moment.tz_localize("UTC") if zone == "UTC" else moment


def _date(key: int, how: str) -> Any:
    return np.datetime64(key, "D").item()


def _time(key: int, how: str) -> Any:
    return pd.Timedelta(key, unit=how)


def _decimal(key: int, scale: str) -> Decimal:
    return Decimal((int(key < 0), tuple(map(int, str(abs(key)))), -int(scale)))


def _text(key: bytes, how: str) -> str:
    return key.decode("utf-8", "replace")


_CONVERTERS: dict[str, Callable[[Any, str], Any]] = {
    "timestamp": _timestamp,
    "date": _date,
    "time": _time,
    "decimal": _decimal,
    "text": _text,
    "bool": lambda key, how: bool(key),
}
