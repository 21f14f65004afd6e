"""A partition column: what the names of directories tell of it, which is everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..partition_types import inferred
from .part import FileFacts
from .result import ColumnProfile, Lookup

__all__ = ["partition_profile"]


def partition_profile(
    key: str, files: Mapping[int, FileFacts], values: Mapping[int, str | None]
) -> ColumnProfile:  # fmt: skip
    """Make the profile of a partition column.

    Parameters
    ----------
    key : str
        Its name.
    files : mapping of int to FileFacts
        The files that could be read.
    values : mapping of int to (str or None)
        The value of each, as a text; None is the null partition.

    Returns
    -------
    ColumnProfile
        Its type is inferred from the values, as a read does where none is given.
    """
    kind = inferred(raw for raw in dict.fromkeys(values.values()) if raw is not None)
    typed = {
        raw: kind.value(kind.parse(raw))
        for raw in dict.fromkeys(values.values())
        if raw or (raw == "" and kind.is_text)
    }
    rows: Counter = Counter()
    num_bytes: Counter = Counter()
    groups: Counter = Counter()
    counts: Counter = Counter()
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
        lookup = Lookup(*shares)
    total = num_rows + nulls
    return ColumnProfile(
        key, kind.name, is_partition=True, num_values=total, nulls=nulls, null_share=nulls / total if total else None,
        nans=0, distinct=len(there), distinct_kind="exact", distinct_at_least=len(there), distinct_at_most=len(there),
        min=there[0] if there else None, max=there[-1] if there else None, min_exact=True, max_exact=True,
        codecs={}, encodings={}, page_encodings={}, distrusted={}, lookup=lookup, small_range=lookup,
    )  # fmt: skip
