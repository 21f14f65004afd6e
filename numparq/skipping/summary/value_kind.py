"""Value kinds: which values compare across files, whatever type a file stores them in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from numparq.expr.sort_keys import JULIAN_EPOCH, NS_OF_DAY, KeyDomain, key_domain
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
    """Convert the ordered int64 keys of floats to float64."""
    bits = np.where(keys < 0, keys ^ ((1 << 8 * domain.width - 1) - 1), keys)
    floats: np.ndarray = bits.astype(f"<i{domain.width}").view(f"<f{domain.width}").astype(np.float64)
    return floats


def plain_value(leaf: Leaf, key: Any) -> bytes:
    """Return the PLAIN value of a key of the leaf column's kind; decimals of BYTE_ARRAY take the fewest bytes."""
    domain = key_domain(leaf)
    if domain.is_float:
        return np.array(key, f"<f{domain.width}").tobytes()
    if domain.kind == "int96":
        day, nanoseconds = divmod(int(key), NS_OF_DAY)
        return nanoseconds.to_bytes(8, "little") + (day + JULIAN_EPOCH).to_bytes(4, "little", signed=True)
    if domain.kind == "decimal" and not domain.width:
        return int(key).to_bytes(int(key).bit_length() // 8 + 1, "big", signed=True)
    return domain.plain_value(key if isinstance(key, bytes) else int(key))


# --- keys to Python values --------------------------------------------------------------------------------------------


def _timestamp(key: int, detail: str) -> Any:
    unit, _, zone = detail.partition(", ")
    if zone == "INT96":
        unit, key = ("ns", key) if abs(key) < 1 << 63 else ("us", key // 1000)
    moment = pd.Timestamp(np.datetime64(key, unit))  # type: ignore[call-overload]
    return moment.tz_localize("UTC") if zone == "UTC" else moment


def _date(key: int, detail: str) -> Any:
    return np.datetime64(key, "D").item()


def _time(key: int, detail: str) -> Any:
    return pd.Timedelta(key, unit=detail)


def _decimal(key: int, scale: str) -> Decimal:
    return Decimal((int(key < 0), tuple(map(int, str(abs(key)))), -int(scale)))


def _text(key: bytes, detail: str) -> str:
    return key.decode("utf-8", "replace")


_CONVERTERS: dict[str, Callable[[Any, str], Any]] = {
    "timestamp": _timestamp,
    "date": _date,
    "time": _time,
    "decimal": _decimal,
    "text": _text,
    "bool": lambda key, detail: bool(key),
    "float": lambda key, detail: key + 0.0,  # -0.0 becomes 0.0
}
