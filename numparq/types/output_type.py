"""Output types: how a leaf column is decoded, and which array it becomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from numparq.format.arrow_type import ArrowType
from numparq.kernels.enums import INT64
from numparq.kernels.status import INEXACT, NULL_FOUND, check_status
from numparq.kernels.tables import COPY

UTF8_KINDS = ("utf8", "large_utf8", "utf8_view")
BINARY_KINDS = ("binary", "large_binary", "binary_view")


def int_dtype(arrow_type: ArrowType) -> np.dtype:
    """Give the NumPy dtype of an Arrow integer type."""
    return np.dtype(f"{'i' if arrow_type.signed else 'u'}{arrow_type.bit_width // 8}")


@dataclass(frozen=True, slots=True)
class OutputType:
    """How to decode one leaf column, and how to finish it.

    Parameters
    ----------
    storage : str
        ``"fixed"``: values of one size. ``"binary"``: `BinaryArray`. ``"dictionary"``: `DictionaryArray` (a
        `BinaryArray` where a page has no dictionary). ``"null"``: there is nothing to decode; all rows are null.
    finish : str
        Key of the finisher in `numparq.to_pandas`.
    type : ArrowType
        What the values mean.
    dtype : numpy.dtype or None
        For fixed storage, the dtype of the array that kernels write; for a dictionary, that of the codes.
    conversion : int
        ``COPY``, ``NARROW``, ``WIDEN_SIGNED``, ``WIDEN_UNSIGNED``, ``INT96_NS`` or ``INT96_US``.
    nulls : str
        ``"fill"``: a null becomes `fill`. ``"mask"``: the same, and the validity is kept. ``"refuse"``: the kernel
        stops with NULL_FOUND.
    fill : bytes
        What stands for a null, as the bytes of one item; empty means zeros.
    physical : int
        The physical type.
    utf8 : bool
        Whether the bytes must be valid UTF-8.
    pandas_dtype : pandas.api.extensions.ExtensionDtype or None
        The extension dtype of the finished column, where the finisher does not decide that itself.
    unit : str
        Unit to convert a timestamp to once it is decoded; empty for none.
    block : bool
        Whether columns of this target share one block of the frame.
    narrow : numpy.dtype or None
        For integers widened to float64: the dtype to go back to if there was no null after all.
    categorical : bool
        Whether the finished column is turned into a Categorical.
    entries : OutputType or None
        For a dictionary whose values are not simply strings or bytes: how they are finished.
    wanted : numparq.format.key_values.pandas_dtypes.DtypeSpec or None
        What the finished column is turned into, where that can be.
    nested : bool
        Whether the column is a leaf of a nested one: its values are decoded dense, and its levels besides.
    coded : bool
        Of such a leaf with binary storage: whether pages of dictionary indices are kept as these, in a
        `DictionaryArray`, where the dictionary is the smaller part.
    on_null, on_inexact : OutputType or None
        What to try next when a kernel says NULL_FOUND, or INEXACT.
    """

    storage: str
    finish: str
    type: ArrowType
    dtype: np.dtype | None = None
    conversion: int = COPY
    nulls: str = "refuse"
    fill: bytes = b""
    physical: int = INT64
    utf8: bool = False
    pandas_dtype: Any = None
    unit: str = ""
    block: bool = False
    narrow: np.dtype | None = None
    categorical: bool = False
    entries: OutputType | None = None
    wanted: Any = None
    nested: bool = False
    coded: bool = False
    on_null: OutputType | None = None
    on_inexact: OutputType | None = None

    def __hash__(self) -> int:
        return hash((self.storage, self.finish, self.physical, self.conversion))  # which tells most of them apart

    def along(self, **changes: Any) -> OutputType:
        """Make the same changes to this target and to all that may follow it."""
        if all(getattr(self, name) == value for name, value in changes.items()):
            return self
        on_null = self.on_null.along(**changes) if self.on_null else None
        on_inexact = self.on_inexact.along(**changes) if self.on_inexact else None
        return replace(self, **changes, on_null=on_null, on_inexact=on_inexact)

    @property
    def fill_bits(self) -> int:
        """`fill` as the low bytes of an int64, as kernels take it; 0 for items of more than 8 bytes."""
        return int.from_bytes(self.fill, "little", signed=True) if len(self.fill) <= 8 else 0


# Holds the place of a nested leaf among the targets of the flat columns.
NESTED_PLACEHOLDER = OutputType("null", "nulls", ArrowType("null"), nested=True)


def fallback_type(output_type: OutputType, status: int) -> OutputType:
    """Give the next target for a column that a kernel could not decode as `target` says.

    Parameters
    ----------
    output_type : OutputType
        The target tried.
    status : int
        What the kernel returned: NULL_FOUND or INEXACT.

    Returns
    -------
    OutputType
        How to decode the column, whole, once more.

    Raises
    ------
    ParquetError
        For any other status, and where there is nothing else to try.
    """
    following = {NULL_FOUND: output_type.on_null, INEXACT: output_type.on_inexact}.get(status)
    if following is None:
        check_status(status)
        raise ValueError(f"{status} is not the status of a failure")
    return following


@dataclass(frozen=True, slots=True)
class LeafType:
    """What the tables of `numparq.types.choose` decide on.

    Parameters
    ----------
    type : ArrowType
        What the values mean.
    physical, type_length : int
        The physical type, and bytes of a value of FIXED_LEN_BYTE_ARRAY.
    optional : bool
        Whether there can be nulls at all.
    nulls_expected : bool
        Whether the statistics tell of nulls.
    """

    type: ArrowType
    physical: int
    type_length: int
    optional: bool
    nulls_expected: bool

    def fixed(self, dtype: Any, finish: str, nulls: str = "fill", **more: Any) -> OutputType:
        """Make a target for values of a fixed size; required columns cannot hold nulls, whatever they are to become."""
        kept = nulls if self.optional else "refuse"
        return OutputType("fixed", finish, self.type, np.dtype(dtype), nulls=kept, physical=self.physical, **more)

    def binary(self, finish: str, **more: Any) -> OutputType:
        """Make a target for strings or bytes of variable length."""
        return OutputType(
            "binary", finish, self.type, physical=self.physical, utf8=self.type.kind in UTF8_KINDS, **more
        )
