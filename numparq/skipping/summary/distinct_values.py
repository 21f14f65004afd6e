"""Distinct values of column chunks, exactly, unless they are more than a limit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.expr.sort_keys import JULIAN_EPOCH, NS_OF_DAY
from numparq.to_pandas.dictionary import index_strings


def distinct_numbers(values: np.ndarray, most: int) -> np.ndarray | None:
    """Return the distinct values of a fixed size, with at most one NaN, as a copy; None if they are more than `most`.

    Both zeros are distinct. Timestamps become INT96 values as ``V12``.
    """
    nans = values[np.isnan(values)][:1] if values.dtype.kind == "f" else values[:0]
    if len(nans):
        values = values[~np.isnan(values)]
    words = values.view(f"i{values.dtype.itemsize}") if values.dtype.kind == "f" else values
    if len(np.unique(words[: 2 * most + 2])) > most:
        return None
    distinct = np.append(np.unique(words).view(values.dtype), nans)
    if len(distinct) > most:
        return None
    return int96_values(distinct) if distinct.dtype.kind == "M" else distinct


def distinct_strings(data: np.ndarray, starts: np.ndarray, ends: np.ndarray, most: int) -> BinaryArray | None:
    """Return the distinct strings from `starts` to `ends` (int64, exclusive) as a copy; None if more than `most`."""
    sample = slice(2 * most + 2)
    if len(index_strings(data, len(data), starts[sample], ends[sample])[0]) > most:
        return None
    firsts, _ = index_strings(data, len(data), starts, ends)
    if len(firsts) > most:
        return None
    starts, lengths = starts[firsts], (ends - starts)[firsts]
    offsets = np.append(0, np.cumsum(lengths))
    return BinaryArray(offsets, data[np.arange(int(offsets[-1])) + np.repeat(starts - offsets[:-1], lengths)])


def merge_distinct(parts: Sequence[np.ndarray | BinaryArray], most: int) -> np.ndarray | BinaryArray | None:
    """Return the distinct values of several chunks; None if they are more than `most`."""
    numbers = [part for part in parts if isinstance(part, np.ndarray)]
    if numbers:
        return numbers[0] if len(numbers) == 1 else distinct_numbers(np.concatenate(numbers), most)
    strings = [part for part in parts if isinstance(part, BinaryArray)]
    if len(strings) == 1:
        return strings[0]
    sizes = np.cumsum([0, *(len(part.data) for part in strings)])
    starts, ends = (
        np.concatenate([part.offsets[side] + size for part, size in zip(strings, sizes, strict=False)])
        for side in (slice(None, -1), slice(1, None))
    )
    return distinct_strings(np.concatenate([part.data for part in strings]), starts, ends, most)


def int96_values(moments: np.ndarray) -> np.ndarray:
    """Return INT96 values, as ``V12``, of timestamps in nanoseconds or microseconds."""
    per_day = NS_OF_DAY if np.datetime_data(moments.dtype)[0] == "ns" else NS_OF_DAY // 1000
    days, rest = np.divmod(moments.view(np.int64), per_day)
    words = np.empty((len(moments), 3), "<u4")
    words[:, :2] = (rest * (NS_OF_DAY // per_day)).view("<u4").reshape(-1, 2)
    words[:, 2] = days + JULIAN_EPOCH
    return words.view("V12").reshape(-1)
