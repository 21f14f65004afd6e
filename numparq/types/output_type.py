"""Output types: how a leaf column is decoded, and which array it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from numparq.format.arrow_type import ArrowType
from numparq.kernels.enums import INT64
from numparq.kernels.status import INEXACT, NULL_FOUND, check_status
from numparq.kernels.tables import CODES, COPY, DAYS_MS, NARROW, NULLS_FILL, NULLS_MASK, NULLS_RAISE

UTF8_KINDS = ("utf8", "large_utf8", "utf8_view")
BINARY_KINDS = ("binary", "large_binary", "binary_view")
_NULLS = {"fill": NULLS_FILL, "mask": NULLS_MASK, "refuse": NULLS_RAISE}


def int_dtype(arrow_type: ArrowType) -> np.dtype:
    """Return the NumPy dtype of an Arrow integer type."""
    return np.dtype(f"{'i' if arrow_type.signed else 'u'}{arrow_type.bit_width // 8}")


@dataclass(frozen=True, slots=True)
class OutputType:
    """Decoding of one leaf column, and the array that it becomes.

    Attributes
    ----------
    storage : str
        ``"fixed"``: values of one size. ``"binary"``: `BinaryArray`. ``"dictionary"``: `DictionaryArray` (or
        `BinaryArray` if a page has no dictionary). ``"null"``: nothing to decode, all rows are null.
    array_kind : str
        Key of the conversion in `numparq.to_pandas`.
    dtype : numpy.dtype or None
        Dtype that kernels write for fixed storage; dtype of the codes for a dictionary.
    conversion : int
        ``COPY``, ``NARROW``, ``WIDEN_SIGNED``, ``WIDEN_UNSIGNED``, ``INT96_NS``, ``INT96_US`` or ``DAYS_MS``.
    nulls : str
        ``"fill"``: nulls become `fill`. ``"mask"``: also keep the validity. ``"refuse"``: the kernel returns
        NULL_FOUND.
    fill : bytes
        One item that stands for a null; empty for zeros.
    utf8 : bool
        Whether the bytes must be valid UTF-8.
    pandas_dtype : pandas.api.extensions.ExtensionDtype or None
        Extension dtype of the result, unless `array_kind` implies it.
    unit : str
        Unit to convert decoded timestamps to; empty for none.
    shares_block : bool
        Whether columns of this output type share one block of the DataFrame.
    narrow_dtype : numpy.dtype or None
        For integers widened to float64: the dtype to return to if there was no null.
    categorical : bool
        Whether to convert the result to a Categorical.
    entry_type : OutputType or None
        For a dictionary of values other than plain strings or bytes: output type of its entries.
    cast_to : numparq.format.key_values.pandas_dtypes.DtypeSpec or None
        Dtype to cast the result to, if possible.
    nested : bool
        Whether the leaf column is nested: its values are decoded densely, and its levels apart.
    keep_codes : bool
        For a nested leaf column with binary storage: whether dictionary indices are kept in a `DictionaryArray` if the
        dictionary is the smaller part.
    on_null, on_inexact : OutputType or None
        Fallback after the kernel status NULL_FOUND or INEXACT.
    chunk_fields : tuple of int
        C_CAST, C_ITEM_SIZE, C_NULLS and C_FILL of its column chunks; C_FILL is 0 for items above 8 bytes.
    """

    storage: str
    array_kind: str
    type: ArrowType
    dtype: np.dtype | None = None
    conversion: int = COPY
    nulls: str = "refuse"
    fill: bytes = b""
    physical: int = INT64
    utf8: bool = False
    pandas_dtype: Any = None
    unit: str = ""
    shares_block: bool = False
    narrow_dtype: np.dtype | None = None
    categorical: bool = False
    entry_type: OutputType | None = None
    cast_to: Any = None
    nested: bool = False
    keep_codes: bool = False
    on_null: OutputType | None = None
    on_inexact: OutputType | None = None
    chunk_fields: tuple[int, int, int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        size = 0 if self.dtype is None else self.dtype.itemsize
        fill = int.from_bytes(self.fill, "little", signed=True) if len(self.fill) <= 8 else 0
        fields = self.conversion, size, _NULLS[self.nulls], fill
        if self.storage == "dictionary":
            fields = CODES, size, NULLS_FILL, -1
        object.__setattr__(self, "chunk_fields", fields)

    def __hash__(self) -> int:
        return hash((self.storage, self.array_kind, self.physical, self.conversion))  # cheap, and distinct for most

    def replace_all(self, **changes: Any) -> OutputType:
        """Return the output type with the same changes to itself and all its fallbacks."""
        if all(getattr(self, name) == value for name, value in changes.items()):
            return self
        on_null = self.on_null.replace_all(**changes) if self.on_null else None
        on_inexact = self.on_inexact.replace_all(**changes) if self.on_inexact else None
        return replace(self, **changes, on_null=on_null, on_inexact=on_inexact)


def cast_stored(values: np.ndarray, target: OutputType) -> np.ndarray:
    """Return integers or fixed-size items, as stored, in the dtype that kernels write for an output type."""
    assert target.dtype is not None
    if target.conversion == NARROW:
        return values.view("i4").astype(target.dtype)
    if target.conversion == DAYS_MS:
        return values.view("i4").astype("M8[D]").astype(target.dtype)
    return values.view(target.dtype)


# Placeholder of a nested leaf column among the output types of flat columns.
NESTED_PLACEHOLDER = OutputType("null", "nulls", ArrowType("null"), nested=True)


def fallback_type(output_type: OutputType, status: int) -> OutputType:
    """Return the output type with which to decode the whole column again, after NULL_FOUND or INEXACT.

    ParquetError for any other status, or if there is no fallback.
    """
    following = {NULL_FOUND: output_type.on_null, INEXACT: output_type.on_inexact}.get(status)
    if following is None:
        check_status(status)
        raise ValueError(f"kernel status {status} is not an error")
    return following


@dataclass(frozen=True, slots=True)
class LeafType:
    """Type of a leaf column, from which the tables of `dtype_backends` choose an output type.

    Attributes
    ----------
    type_length : int
        Bytes of a FIXED_LEN_BYTE_ARRAY value; 0 for other physical types.
    optional : bool
        Whether the schema allows nulls.
    nulls_expected : bool
        Whether the statistics count nulls.
    """

    type: ArrowType
    physical: int
    type_length: int
    optional: bool
    nulls_expected: bool

    def fixed(self, dtype: Any, array_kind: str, nulls: str = "fill", **more: Any) -> OutputType:
        """Return an output type of fixed-size values; nulls are refused unless the leaf column is optional."""
        kept = nulls if self.optional else "refuse"
        return OutputType("fixed", array_kind, self.type, np.dtype(dtype), nulls=kept, physical=self.physical, **more)

    def binary(self, array_kind: str, **more: Any) -> OutputType:
        """Return an output type of variable-length strings or bytes."""
        return OutputType(
            "binary", array_kind, self.type, physical=self.physical, utf8=self.type.kind in UTF8_KINDS, **more
        )
