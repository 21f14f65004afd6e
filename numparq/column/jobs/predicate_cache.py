"""Predicate cache: values decoded for a filter become columns without a second fetch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray
from numparq.column.read.decode import check_utf8
from numparq.column.read.output import FixedOutput
from numparq.column.read.pages import Pages
from numparq.column.read.take import ValueSelection, dictionary_decode, take_array, take_binary
from numparq.column.scratch import Scratch
from numparq.errors import ParquetError
from numparq.kernels.status import INEXACT, NULL_FOUND
from numparq.kernels.tables import (
    C_CAST,
    C_FILL,
    C_NULL_COUNT,
    C_NULLS,
    C_OUT,
    C_VALIDITY,
    COPY,
    NULLS_MASK,
    NULLS_RAISE,
    WIDEN_SIGNED,
    WIDEN_UNSIGNED,
)
from numparq.types.output_type import OutputType, cast_stored

from .task import DecodeTask, PageSink

_MAX_EXACT = 1 << 53  # of integers in float64


@dataclass(frozen=True, slots=True)
class CachedFixed:
    """Values of a fixed size, as they are stored.

    Parameters
    ----------
    values : numpy.ndarray
        An item a row, arbitrary for nulls.
    validity : uint8 array or None
        1 where there is a value; None: everywhere.
    """

    values: np.ndarray
    validity: np.ndarray | None

    @property
    def num_bytes(self) -> int:
        """Bytes of the values."""
        return self.values.nbytes + (0 if self.validity is None else self.validity.nbytes)

    def take(self, selection: ValueSelection) -> CachedFixed:
        """Take rows, in memory of their own."""
        validity = None if self.validity is None else take_array(self.validity, selection)
        return CachedFixed(take_array(self.values, selection), validity)

    def copy_to(self, chunk: np.ndarray, target: OutputType, output: FixedOutput) -> int:
        """Copy or cast the values to the output at C_OUT and C_VALIDITY of a row of the chunk table.

        Returns 0, or the status with which the kernels ask for another output type. Sets C_NULL_COUNT.
        """
        is_null = None if self.validity is None else self.validity == 0
        if is_null is not None and chunk[C_NULLS] == NULLS_RAISE and is_null.any():
            return NULL_FOUND
        values = self.values if chunk[C_CAST] == COPY else _cast(self.values, target, is_null)
        if values is None:
            return INEXACT
        start, row, item = int(chunk[C_OUT]), int(chunk[C_VALIDITY]), values.itemsize
        output.out[start : start + values.nbytes] = values.view(np.uint8)
        if chunk[C_NULLS] == NULLS_MASK:
            output.mask[row : row + len(values)] = 1 if self.validity is None else self.validity
        if is_null is not None:
            chunk[C_NULL_COUNT] = np.count_nonzero(is_null)
            fill = np.frombuffer(int(chunk[C_FILL]).to_bytes(8, "little", signed=True).ljust(item, b"\0"), np.uint8)
            output.out[start : start + values.nbytes].reshape(-1, item)[is_null] = fill[:item]
        return 0


def _cast(values: np.ndarray, target: OutputType, is_null: np.ndarray | None) -> np.ndarray | None:
    """Return stored values in the dtype of an output type; None if one, not null, is inexact in float64."""
    if target.conversion not in (WIDEN_SIGNED, WIDEN_UNSIGNED):
        return cast_stored(values, target)
    if target.conversion == WIDEN_UNSIGNED:
        values = values.view(f"u{values.itemsize}")
    if values.itemsize == 8:
        is_inexact = values > _MAX_EXACT
        if target.conversion == WIDEN_SIGNED:
            is_inexact |= values < -_MAX_EXACT
        if np.any(is_inexact if is_null is None else is_inexact & ~is_null):
            return None
    return values.astype(np.float64)


@dataclass(frozen=True, slots=True)
class CachedBinary:
    """Values of BYTE_ARRAY, or codes of them; a row each."""

    array: BinaryArray | DictionaryArray

    @property
    def num_bytes(self) -> int:
        """Bytes of the values, and of their dictionary."""
        return self.array.num_bytes

    def take(self, selection: ValueSelection) -> CachedBinary:
        """Take rows, in memory of their own."""
        if isinstance(self.array, DictionaryArray):
            return CachedBinary(DictionaryArray(take_array(self.array.codes, selection), self.array.dictionary))
        return CachedBinary(take_binary(self.array, selection))

    def shrink(self) -> CachedBinary:
        """Return the strings themselves if they are fewer than the dictionary has entries, so that it can be freed."""
        array = self.array
        is_smaller = isinstance(array, DictionaryArray) and len(array) < len(array.dictionary)
        return CachedBinary(dictionary_decode(array)) if is_smaller else self  # type: ignore[arg-type]


@dataclass(eq=False, repr=False)
class CachedSink(PageSink):
    """Output of cached values, of a task without pages: they are copied, or cast without the kernels.

    Every cast of stored values that can be cached has a NumPy function; INT96 is not cached.

    Parameters
    ----------
    cached : CachedFixed or CachedBinary
        The values.
    target : OutputType
        What they become.
    output : FixedOutput or None
        Memory of fixed storage.
    """

    cached: CachedFixed | CachedBinary
    target: OutputType
    output: FixedOutput | None
    arrays: list[Any] = field(default_factory=list)
    failed: dict[int, int] = field(default_factory=dict)

    def decode(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> None:
        """Raise AssertionError: there are no pages."""
        raise AssertionError("a task of cached values has pages")

    def single(self, position: int) -> CachedSink:
        """Return an unused sink for the chunk."""
        return CachedSink(self.cached, self.target, self.output)

    def finish(self, task: DecodeTask) -> None:
        """Copy the values."""
        chunk, cached = task.source.chunks[0], self.cached
        if isinstance(cached, CachedFixed):
            assert self.output is not None
            status = cached.copy_to(chunk, self.target, self.output)
            if status < 0:
                self.failed[task.columns[0]] = status
            return
        array = cached.array
        if isinstance(array, DictionaryArray):
            strings = array.dictionary
            self.arrays.append(array if self.target.storage == "dictionary" else dictionary_decode(array))
        else:
            strings = array
            self.arrays.append(array)
        if self.target.utf8:
            try:
                check_utf8(strings)
            except ParquetError as error:
                raise task.locate(error, 0) from None
