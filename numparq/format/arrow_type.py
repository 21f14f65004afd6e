"""Arrow data types as plain records, without pyarrow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArrowType:
    """An Arrow data type; only the parameters of its kind are set.

    Attributes
    ----------
    kind : str
        One of ``null bool int float decimal date time timestamp duration interval utf8 large_utf8 utf8_view binary
        large_binary binary_view fixed_size_binary uuid``, or a nested kind (``list``, ``struct``, ...).
    bit_width : int
        For ``int``, ``float`` and ``decimal``.
    signed : bool
        For ``int``.
    unit : str
        ``s ms us ns`` of ``time``, ``timestamp`` and ``duration``; ``D`` or ``ms`` of ``date``.
    timezone : str
        For ``timestamp``; empty for none.
    precision, scale : int
        For ``decimal``, in decimal digits.
    byte_width : int
        For ``fixed_size_binary``; for ``fixed_size_list`` the number of elements.
    dictionary : DictionaryIndex or None
        Set for a dictionary type; the other fields then describe its values.
    extension, extension_metadata : str or None
        Name and parameters of the extension type with this storage type.
    """

    kind: str
    bit_width: int = 0
    signed: bool = True
    unit: str = ""
    timezone: str = ""
    precision: int = 0
    scale: int = 0
    byte_width: int = 0
    dictionary: DictionaryIndex | None = None
    extension: str | None = None
    extension_metadata: str | None = None


@dataclass(frozen=True, slots=True)
class DictionaryIndex:
    """Integer type of a dictionary's codes, and whether its order is meaningful."""

    bit_width: int = 32
    signed: bool = True
    ordered: bool = False


TIME_UNITS = ("s", "ms", "us", "ns")
