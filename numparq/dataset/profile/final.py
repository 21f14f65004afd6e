"""What was found out about all files, as a profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .advice import advice_on
from .kinds import Kind
from .lookups import FilesOrder, files_order, lookups
from .part import ColumnPart, Part, Values
from .partition_columns import partition_profile
from .result import ColumnProfile, Profile
from .words import printable

__all__ = ["profile_of"]


def profile_of(
    path: str, num_files: int, part: Part, keys: Sequence[str], values: Mapping[int, tuple[str | None, ...]]
) -> Profile:  # fmt: skip
    """Make a profile.

    Parameters
    ----------
    path : str
        What was looked at.
    num_files : int
        All files.
    part : Part
        What was found out about them.
    keys : sequence of str
        The partition columns.
    values : mapping of int to tuple of (str or None)
        Their values, by the ordinals of files.

    Returns
    -------
    Profile
    """
    files = [part.files[at] for at in sorted(part.files)]
    compressed = sum(file.compressed for file in files)
    paths = sorted(part.columns, key=lambda path: part.columns[path].place)
    columns = [_column(printable(".".join(path)), part.columns[path], part, compressed) for path in paths]
    columns += [partition_profile(key, part.files, {at: value[place] for at, value in values.items()})
                for place, key in enumerate(keys)]  # fmt: skip
    found = Profile(
        printable(path), num_files, sum(file.row_groups for file in files), sum(file.rows for file in files),
        sum(file.size for file in files), compressed, sum(file.uncompressed for file in files), tuple(columns),
        _ordered(part.writers), _ordered(part.sorted_by), min((file.size for file in files), default=0),
        max((file.size for file in files), default=0), len(part.troubled),
        tuple(printable(trouble.message) for trouble in part.troubles), (),
    )  # fmt: skip
    return replace(found, advice=tuple(advice_on(found)))


def _column(name: str, column: ColumnPart, part: Part, all_bytes: int) -> ColumnProfile:
    kinds = sorted(column.values)
    kind: Kind | None = column.kinds[kinds[0]] if len(kinds) == 1 else None
    values = column.values[kinds[0]] if kind is not None else Values()
    nulls = None if column.nulls_unknown else column.nulls
    distinct, how, least, most = _distinct(column, values, kind)
    order = files_order(column) if kind is not None else FilesOrder()
    lookup, small_range = lookups(column, part.files, distinct if how != "unknown" else None, is_mixed=kind is None)
    return ColumnProfile(
        name, _type_words(column), tuple(sorted({physical for physical, _ in column.types})),
        tuple(sorted({printable(logical) for _, logical in column.types if logical})),
        is_nested=column.is_nested, chunks=column.chunks, num_values=column.num_values, nulls=nulls,
        null_share=None if nulls is None or not column.num_values else nulls / column.num_values,
        nans=None if column.nans_unknown else column.nans,
        distinct=distinct, distinct_kind=how, distinct_at_least=least, distinct_at_most=most,
        **_bounds(values, kind),
        compressed=column.compressed, uncompressed=column.uncompressed,
        share=column.compressed / all_bytes if all_bytes else 0.0,
        codecs=_ordered(column.codecs), encodings=_ordered(column.encodings),
        page_encodings=_ordered(column.page_encodings),
        pages=column.pages if column.paged == column.chunks else None,
        dictionary_share=column.dictionary_pages / column.pages if column.pages else None,
        with_statistics=column.with_statistics, with_column_index=column.with_column_index,
        with_offset_index=column.with_offset_index, with_bloom=column.with_bloom, bloom_bytes=column.bloom_bytes,
        distrusted=_ordered(column.distrusted),
        mean_length=column.text_bytes / column.text_values if column.text_values else None,
        min_length=column.shortest, max_length=column.longest,
        rows_in_order=column.in_order, rows_out_of_order=column.out_of_order,
        pages_in_order=column.pages_in_order, pages_out_of_order=column.pages_out_of_order,
        files_in_order=order.in_order, files_out_of_order=order.out_of_order, files_overlapping=order.overlapping,
        declared=column.declared, lookup=lookup, small_range=small_range, read=column.read,
    )  # fmt: skip


def _type_words(column: ColumnPart) -> str:
    return printable(" or ".join(sorted({logical or physical for physical, logical in column.types})))


def _bounds(values: Values, kind: Kind | None) -> dict[str, Any]:
    """Give the bounds of all values; there are none as long as there are values outside of chunks with bounds."""
    if kind is None or values.low is None or values.unbounded:
        return {}
    return {"min": kind.value(values.low), "max": kind.value(values.high), "min_exact": values.low_exact,
            "max_exact": values.high_exact}  # fmt: skip


def _distinct(column: ColumnPart, values: Values, kind: Kind | None) -> tuple[int | None, str, int, int]:
    """Give the number of different values, where it is from, and between what it lies."""
    most = column.num_values - column.nulls - column.nans
    if kind is None:
        return None, "unknown", int(most > 0), most
    least = int(most > 0 and not column.nulls_unknown and not column.nans_unknown)
    most = min(most, _room(values, kind, column))
    if values.sketch.is_exact and values.is_certain:
        least = max(least, len(values.sketch.hashes))
    if values.low_exact and values.high_exact and values.low != values.high:
        least = max(least, 2)
    if values.uncounted:
        return (most, "exact", least, most) if least == most else (None, "unknown", least, most)
    count = round(values.sketch.count())
    if values.sketch.is_exact:
        if values.is_certain:
            return count, "exact", count, count
        return count, "exact" if least == count else "dictionary", min(least, count), count
    return min(max(count, least), most), "estimate", least, most


def _room(values: Values, kind: Kind, column: ColumnPart) -> int:
    """Give how many different values there may be between the bounds."""
    if kind.keys == "float64" or values.low is None or values.unbounded:
        return column.num_values
    if isinstance(values.low, (bytes, str)):
        return 1 if values.low == values.high else column.num_values
    return int(values.high) - int(values.low) + 1


def _ordered(counts: Counter | Mapping[str, int]) -> dict[str, int]:
    return {printable(name): count for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))}
