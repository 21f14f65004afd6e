"""Build the profile of a dataset from its merged partial profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from numparq.dataset.partitions.types import infer_partition_type
from numparq.skipping.summary.value_kind import ValueKind

from .advice import advise
from .figures import ColumnProfile, LookupCost
from .lookups import FileOrderCounts, count_file_orders, estimate_lookups
from .partial_profile import FileSizes, PartialColumnProfile, PartialProfile, ValueSummary
from .profile import Profile
from .render import escape_surrogates

_NAMES = ("codecs", "encodings", "page_encodings", "distrusted")
_SUMS = (
    *("chunks", "num_values", "compressed", "uncompressed", "read", "declared", "with_statistics", "with_column_index"),
    *("with_offset_index", "with_bloom", "bloom_bytes", "rows_in_order", "rows_out_of_order", "pages_in_order"),
    "pages_out_of_order",
)


def profile_partition_column(
    key: str, files: Mapping[int, FileSizes], values: Mapping[int, str | None]
) -> ColumnProfile:
    """Build the profile of a partition column from the files that could be read.

    `values` has the partition value of each file as text (None: null); the type is inferred as in a read.
    """
    texts = dict.fromkeys(values.values())
    kind = infer_partition_type(raw for raw in texts if raw is not None)
    typed = {raw: kind.value(kind.parse(raw)) for raw in texts if raw or (raw == "" and kind.is_text)}
    sizes: dict[Any, np.ndarray] = {}  # rows, files, row groups, bytes
    for ordinal, file in files.items():
        raw = values[ordinal]
        value = None if raw is None else typed.get(raw)
        sizes[value] = sizes.get(value, 0) + np.array([file.rows, 1, file.row_groups, file.compressed])
    nulls = int(sizes.pop(None, np.zeros(4, np.int64))[0])
    present = sorted((value for value in sizes if sizes[value][0]), key=lambda value: (str(type(value)), value))
    table = np.array([*sizes.values()], np.float64).reshape(-1, 4)
    lookup, num_rows = None, int(table[:, 0].sum())
    if num_rows:
        totals = np.array([[1, file.row_groups, file.compressed] for file in files.values()]).sum(axis=0)
        lookup = LookupCost(*(table[:, 0] @ table[:, 1:] / num_rows / np.maximum(totals, 1)).tolist())
    total = num_rows + nulls
    return ColumnProfile(
        key,
        kind.name,
        is_partition=True,
        num_values=total,
        nulls=nulls,
        null_share=nulls / total if total else None,
        nans=0,
        distinct=len(present),
        distinct_kind="exact",
        distinct_at_least=len(present),
        distinct_at_most=len(present),
        min=present[0] if present else None,
        max=present[-1] if present else None,
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
    files = list(partial.files.values())
    compressed = sum(file.compressed for file in files)
    paths = sorted(partial.columns, key=lambda path: partial.columns[path].position)
    columns = [
        _profile_column(escape_surrogates(".".join(path)), partial.columns[path], partial, compressed) for path in paths
    ]
    columns += [
        profile_partition_column(key, partial.files, {ordinal: value[position] for ordinal, value in values.items()})
        for position, key in enumerate(keys)
    ]
    profile = Profile(
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
    )
    return replace(profile, advice=tuple(advise(profile)))


def _profile_column(name: str, column: PartialColumnProfile, partial: PartialProfile, all_bytes: int) -> ColumnProfile:
    kind: ValueKind | None = next(iter(column.kinds.values())) if len(column.values) == 1 else None
    values = next(iter(column.values.values())) if kind is not None else ValueSummary()
    counts, num_values = column.counts, column.counts["num_values"]
    nulls = None if counts["nulls_unknown"] else counts["nulls"]
    distinct, source, least, most = _count_distinct(column, values, kind)
    order = count_file_orders(column) if kind is not None else FileOrderCounts()
    lookup, small_range = estimate_lookups(column, partial.files, distinct if source != "unknown" else None)
    types = column.names["types"]
    sums: dict[str, Any] = {name: _sorted_counts(column.names[name]) for name in _NAMES}
    sums |= {name: counts[name] for name in _SUMS}
    return ColumnProfile(
        name,
        escape_surrogates(" or ".join(sorted({logical or physical for physical, logical in types}))),
        tuple(sorted({physical for physical, _ in types})),
        tuple(sorted({escape_surrogates(logical) for _, logical in types if logical})),
        is_nested=column.is_nested,
        nulls=nulls,
        null_share=None if nulls is None or not num_values else nulls / num_values,
        nans=None if counts["nans_unknown"] else counts["nans"],
        distinct=distinct,
        distinct_kind=source,
        distinct_at_least=least,
        distinct_at_most=most,
        **_python_bounds(values, kind),
        share=counts["compressed"] / all_bytes if all_bytes else 0.0,
        pages=counts["pages"] if counts["paged"] == counts["chunks"] else None,
        dictionary_share=counts["dictionary_pages"] / counts["pages"] if counts["pages"] else None,
        mean_length=counts["text_bytes"] / counts["text_values"] if counts["text_values"] else None,
        min_length=column.min_length,
        max_length=column.max_length,
        files_in_order=order.in_order,
        files_out_of_order=order.out_of_order,
        files_overlapping=order.overlapping,
        lookup=lookup,
        small_range=small_range,
        **sums,
    )


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
    counts = column.counts
    most = counts["num_values"] - counts["nulls"] - counts["nans"]
    if kind is None:
        return None, "unknown", int(most > 0), most
    least = int(most > 0 and not counts["nulls_unknown"] and not counts["nans_unknown"])
    most = min(most, _max_distinct(values, kind, counts["num_values"]))
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


def _max_distinct(values: ValueSummary, kind: ValueKind, num_values: int) -> int:
    """Return an upper limit of distinct values by the bounds."""
    if kind.key_dtype == "float64" or values.low is None or values.unbounded:
        return num_values
    if isinstance(values.low, (bytes, str)):
        return 1 if values.low == values.high else num_values
    return int(values.high) - int(values.low) + 1


def _sorted_counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {
        escape_surrogates(name): count for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    }
