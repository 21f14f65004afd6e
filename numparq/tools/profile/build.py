"""Build the profile of a dataset from its merged partial profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from numparq.dataset.partitions.types import infer_partition_type
from numparq.skipping.summary.value_kind import ValueKind
from numparq.skipping.summary.value_summary import ValueSummary
from numparq.util.text import escape_surrogates

from .advice import advise
from .figures import ColumnProfile, LookupCost
from .lookups import count_file_orders, estimate_lookups
from .partial_profile import FileSizes, PartialColumnProfile, PartialProfile
from .profile import Profile

_NAMES = ("codecs", "encodings", "page_encodings", "distrusted")
_FIELDS = frozenset(entry.name for entry in fields(ColumnProfile))


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
    num_present = num_values - counts["nulls"] - counts["nans"]
    limits = values.limit_distinct(kind, num_present, not (counts["nulls_unknown"] or counts["nans_unknown"]))
    lookup, small_range = estimate_lookups(column, partial.files, limits.num_distinct)
    types, distinct = column.names["types"], limits.num_distinct
    in_files = counts["distinct_in_files"] / (distinct * len(partial.files)) if distinct else None
    values_of: dict[str, Any] = {name: count for name, count in counts.items() if name in _FIELDS}
    values_of |= {name: _sorted_counts(column.names[name]) for name in _NAMES}
    values_of |= dict(
        type=escape_surrogates(" or ".join(sorted({logical or physical for physical, logical in types}))),
        physical=tuple(sorted({physical for physical, _ in types})),
        logical=tuple(sorted({escape_surrogates(logical) for _, logical in types if logical})),
        is_nested=column.is_nested,
        is_index=column.is_index,
        nulls=nulls,
        null_share=None if nulls is None or not num_values else nulls / num_values,
        nans=None if counts["nans_unknown"] else counts["nans"],
        distinct=distinct,
        distinct_kind=limits.source,
        distinct_at_least=limits.least,
        distinct_at_most=limits.most,
        file_share=None if in_files is None else min(in_files, 1.0),
        share=counts["compressed"] / all_bytes if all_bytes else 0.0,
        pages=counts["pages"] if counts["paged"] == counts["chunks"] else None,
        dictionary_share=counts["dictionary_pages"] / counts["pages"] if counts["pages"] else None,
        mean_length=counts["text_bytes"] / counts["text_values"] if counts["text_values"] else None,
        min_length=column.min_length,
        max_length=column.max_length,
        lookup=lookup,
        small_range=small_range,
        **_python_bounds(values, kind),
        **(count_file_orders(column) if kind is not None else {}),
    )
    return ColumnProfile(name, **values_of)


def _python_bounds(values: ValueSummary, kind: ValueKind | None) -> dict[str, Any]:
    """Return the bounds as Python values; empty if any chunk with values has no bounds."""
    if kind is None or values.low is None or values.high is None or values.unbounded:
        return {}
    (low, is_outside), (high, high_exact) = values.low, values.high
    return {
        "min": kind.to_python(low),
        "max": kind.to_python(high),
        "min_exact": not is_outside,
        "max_exact": high_exact,
    }


def _sorted_counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {
        escape_surrogates(name): count for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    }
