"""Build the profile of a dataset from its merged partial profiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numparq.dataset.partitions.types import infer_partition_type

from .advice import advise
from .figures import ColumnProfile, LookupCost
from .lookups import FileOrderCounts, count_file_orders, estimate_lookups
from .partial_profile import FileSizes, PartialColumnProfile, PartialProfile, ValueSummary
from .profile import Profile
from .render import escape_surrogates
from .value_kind import ValueKind


def profile_partition_column(
    key: str, files: Mapping[int, FileSizes], values: Mapping[int, str | None]
) -> ColumnProfile:
    """Build the profile of a partition column from the files that could be read.

    `values` has the partition value of each file as text (None: null); the type is inferred as in a read.
    """
    kind = infer_partition_type(raw for raw in dict.fromkeys(values.values()) if raw is not None)
    typed = {
        raw: kind.value(kind.parse(raw))
        for raw in dict.fromkeys(values.values())
        if raw or (raw == "" and kind.is_text)
    }
    rows: Counter[Any] = Counter()
    num_bytes: Counter[Any] = Counter()
    groups: Counter[Any] = Counter()
    counts: Counter[Any] = Counter()
    for at, file in files.items():
        raw = values[at]
        value = None if raw is None else typed.get(raw)
        rows[value] += file.rows
        num_bytes[value] += file.compressed
        groups[value] += file.row_groups
        counts[value] += 1
    nulls, num_rows = rows.pop(None, 0), sum(rows.values())
    there = sorted((value for value in rows if rows[value]), key=lambda value: (str(type(value)), value))
    lookup = None
    if num_rows:
        weights = {value: rows[value] / num_rows for value in there}
        shares = [
            sum(weight * each[value] for value, weight in weights.items()) / max(sum(each.values()), 1)
            for each in (counts, groups, num_bytes)
        ]
        lookup = LookupCost(*shares)
    total = num_rows + nulls
    return ColumnProfile(
        key,
        kind.name,
        is_partition=True,
        num_values=total,
        nulls=nulls,
        null_share=nulls / total if total else None,
        nans=0,
        distinct=len(there),
        distinct_kind="exact",
        distinct_at_least=len(there),
        distinct_at_most=len(there),
        min=there[0] if there else None,
        max=there[-1] if there else None,
        min_exact=True,
        max_exact=True,
        codecs={},
        encodings={},
        page_encodings={},
        distrusted={},
        lookup=lookup,
        small_range=lookup,
    )


def build_profile(
    path: str,
    num_files: int,
    partial: PartialProfile,
    keys: Sequence[str],
    values: Mapping[int, tuple[str | None, ...]],
) -> Profile:
    """Build the profile of a dataset; `values` has the values of the partition columns `keys` by file ordinal."""
    files = [partial.files[at] for at in sorted(partial.files)]
    compressed = sum(file.compressed for file in files)
    paths = sorted(partial.columns, key=lambda path: partial.columns[path].position)
    columns = [
        _profile_column(escape_surrogates(".".join(path)), partial.columns[path], partial, compressed) for path in paths
    ]
    columns += [
        profile_partition_column(key, partial.files, {at: value[place] for at, value in values.items()})
        for place, key in enumerate(keys)
    ]
    found = Profile(
        escape_surrogates(path),
        num_files,
        sum(file.row_groups for file in files),
        sum(file.rows for file in files),
        sum(file.size for file in files),
        compressed,
        sum(file.uncompressed for file in files),
        tuple(columns),
        _sorted_counts(partial.writers),
        _sorted_counts(partial.sorted_by),
        min((file.size for file in files), default=0),
        max((file.size for file in files), default=0),
        len(partial.troubled),
        tuple(escape_surrogates(trouble.message) for trouble in partial.troubles),
        (),
    )
    return replace(found, advice=tuple(advise(found)))


def _profile_column(name: str, column: PartialColumnProfile, partial: PartialProfile, all_bytes: int) -> ColumnProfile:
    kinds = sorted(column.values)
    kind: ValueKind | None = column.kinds[kinds[0]] if len(kinds) == 1 else None
    values = column.values[kinds[0]] if kind is not None else ValueSummary()
    nulls = None if column.nulls_unknown else column.nulls
    distinct, how, least, most = _count_distinct(column, values, kind)
    order = count_file_orders(column) if kind is not None else FileOrderCounts()
    lookup, small_range = estimate_lookups(
        column, partial.files, distinct if how != "unknown" else None, is_mixed=kind is None
    )
    return ColumnProfile(
        name,
        _type_text(column),
        tuple(sorted({physical for physical, _ in column.types})),
        tuple(sorted({escape_surrogates(logical) for _, logical in column.types if logical})),
        is_nested=column.is_nested,
        chunks=column.chunks,
        num_values=column.num_values,
        nulls=nulls,
        null_share=None if nulls is None or not column.num_values else nulls / column.num_values,
        nans=None if column.nans_unknown else column.nans,
        distinct=distinct,
        distinct_kind=how,
        distinct_at_least=least,
        distinct_at_most=most,
        **_python_bounds(values, kind),
        compressed=column.compressed,
        uncompressed=column.uncompressed,
        share=column.compressed / all_bytes if all_bytes else 0.0,
        codecs=_sorted_counts(column.codecs),
        encodings=_sorted_counts(column.encodings),
        page_encodings=_sorted_counts(column.page_encodings),
        pages=column.pages if column.paged == column.chunks else None,
        dictionary_share=column.dictionary_pages / column.pages if column.pages else None,
        with_statistics=column.with_statistics,
        with_column_index=column.with_column_index,
        with_offset_index=column.with_offset_index,
        with_bloom=column.with_bloom,
        bloom_bytes=column.bloom_bytes,
        distrusted=_sorted_counts(column.distrusted),
        mean_length=column.text_bytes / column.text_values if column.text_values else None,
        min_length=column.min_length,
        max_length=column.max_length,
        rows_in_order=column.in_order,
        rows_out_of_order=column.out_of_order,
        pages_in_order=column.pages_in_order,
        pages_out_of_order=column.pages_out_of_order,
        files_in_order=order.in_order,
        files_out_of_order=order.out_of_order,
        files_overlapping=order.overlapping,
        declared=column.declared,
        lookup=lookup,
        small_range=small_range,
        read=column.read,
    )


def _type_text(column: PartialColumnProfile) -> str:
    return escape_surrogates(" or ".join(sorted({logical or physical for physical, logical in column.types})))


def _python_bounds(values: ValueSummary, kind: ValueKind | None) -> dict[str, Any]:
    """Return the bounds as Python values; empty if any chunk with values has no bounds."""
    if kind is None or values.low is None or values.unbounded:
        return {}
    return {
        "min": kind.to_python(values.low),
        "max": kind.to_python(values.high),
        "min_exact": values.low_exact,
        "max_exact": values.high_exact,
    }


def _count_distinct(
    column: PartialColumnProfile, values: ValueSummary, kind: ValueKind | None
) -> tuple[int | None, str, int, int]:
    """Return the distinct count, its kind (see `ColumnProfile.distinct_kind`), and its lower and upper limit."""
    most = column.num_values - column.nulls - column.nans
    if kind is None:
        return None, "unknown", int(most > 0), most
    least = int(most > 0 and not column.nulls_unknown and not column.nans_unknown)
    most = min(most, _max_distinct(values, kind, column))
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


def _max_distinct(values: ValueSummary, kind: ValueKind, column: PartialColumnProfile) -> int:
    """Return an upper limit of distinct values by the bounds."""
    if kind.key_dtype == "float64" or values.low is None or values.unbounded:
        return column.num_values
    if isinstance(values.low, (bytes, str)):
        return 1 if values.low == values.high else column.num_values
    return int(values.high) - int(values.low) + 1


def _sorted_counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {
        escape_surrogates(name): count for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    }
