"""Choose row group size, encodings and Bloom filters from trial writes of sampled rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc

from numparq.dataset.splits.reader import SplitReader
from numparq.dataset.write.row_group_buffer import arrow_to_frame
from numparq.file.reader import ParquetFile
from numparq.file.writer import ParquetWriter
from numparq.format.schema import Leaf

from .layout import TargetLayout
from .rewrite_plan import RewritePiece

__all__ = [
    "ROWS_PER_PAGE",
    "ROWS_WITH_BLOOM_FILTERS",
    "SampledCardinality",
    "TrialWrite",
    "TunedOptions",
    "trial_write",
    "tune_options",
]

_TRIAL_ROWS = 65_536
# What the writer does not choose by itself, for readers are slower with it, but that all of them know.
_TRIAL_ENCODINGS = ("BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY")
_CARDINALITY_TYPES = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_decimal,
)

# Look-ups of rows read a third of what they would with pages of the writer's default (docs/writing.md).
ROWS_PER_PAGE = 5000
# A Bloom filter leaves row groups out, not pages: of one that it leaves, the column is read whole.
ROWS_WITH_BLOOM_FILTERS = 1 << 17
# What a row group has in memory at the most; a task holds it once as rows and once as what they are encoded to.
ROW_GROUP_BYTES, MIN_ROW_GROUP_BYTES = 128 << 20, 1 << 20
# Of a sample of a column, so many values are to be different ones that a Bloom filter is worth its bytes: where there
# are fewer, most row groups have all of them, and a filter would say yes nearly always.
_DISTINCT_SHARE = 0.5
_MIN_VALUES = 1000
# An encoding that readers are slower with is to make a column at least so small, by its size in the writer's choice.
_MUCH_SMALLER = 0.85


class SampledCardinality(NamedTuple):
    """How many values some rows of a column have, and how many different ones."""

    values: int
    distinct: int


@dataclass
class TrialWrite:
    """What some rows showed.

    Parameters
    ----------
    rows : int
        How many.
    source_bytes, arrow_bytes, new_bytes : float
        What their column chunks take in the files that are there, they in memory, and the column chunks of new files.
    columns : dict of str to SampledCardinality
        Of the columns whose values readers look for one by one.
    sizes : dict of str to dict of str to int
        By encoding (empty: the writer's choice) and leaf, by its dotted path: the bytes that its chunks have.
    """

    rows: int = 0
    source_bytes: float = 0
    arrow_bytes: float = 0
    new_bytes: float = 0
    columns: dict[str, SampledCardinality] = field(default_factory=dict)
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)


def trial_write(
    reader: SplitReader, options: dict[str, Any], sort_by: Sequence[str], piece: RewritePiece
) -> TrialWrite:
    """Read some rows of a piece, write them into memory, and say what that showed.

    Parameters
    ----------
    reader : SplitReader
        Of the table.
    options : dict
        Of the writer.
    sort_by : sequence of str
        What rows will be sorted by.
    piece : RewritePiece
        The rows.
    """
    table = next(iter(reader.tables(piece.split, _TRIAL_ROWS)))
    if not table.num_rows:
        return TrialWrite()
    table = _sorted(table, sort_by)
    trials = {"": _write_sizes(table, options)}
    if "column_encoding" not in options and not options.get("use_byte_stream_split"):
        trials |= {name: _write_sizes(table, {**options, "column_encoding": name}) for name in _TRIAL_ENCODINGS}
    share = table.num_rows / max(piece.split.num_rows or table.num_rows, 1)
    columns = {
        name: SampledCardinality(len(values) - values.null_count, pc.count_distinct(values).as_py())
        for name, values in zip(table.column_names, table.columns, strict=True)
        if any(test(values.type) for test in _CARDINALITY_TYPES)
    }
    return TrialWrite(
        table.num_rows, piece.split.num_bytes * share, table.nbytes, sum(trials[""].values()), columns, trials
    )


def _write_sizes(table: pa.Table, options: dict[str, Any]) -> dict[str, int]:
    """Write rows into memory: the bytes of each leaf."""
    with ParquetWriter(None, threads=1, **options) as writer:
        writer.write(arrow_to_frame(table), index=False)
    with ParquetFile(writer.getvalue()) as file:
        groups = np.arange(file.num_row_groups)
        return {
            ".".join(leaf.path): int(file.footer.chunks["total_compressed_size"][groups, leaf.index].sum())
            for leaf in file.schema
        }


def _sorted(table: pa.Table, sort_by: Sequence[str]) -> pa.Table:
    """Sort rows, where Arrow can: for a look at what that does to sizes."""
    try:
        return table.sort_by([(name, "ascending") for name in sort_by]) if sort_by else table
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):  # of extension types, it is the latter
        return table


@dataclass(frozen=True)
class TunedOptions:
    """What was decided.

    Parameters
    ----------
    shrinkage : float
        The bytes of new files, of each byte of the old ones, about.
    row_group_bytes : int
        What a row group has in memory, about.
    bloom_filters : tuple of str
        The columns that get one.
    encodings : dict of str to str
        Of leaves, by their dotted paths, that have another one than the writer would choose.
    """

    shrinkage: float = 1.0
    row_group_bytes: int = ROW_GROUP_BYTES
    bloom_filters: tuple[str, ...] = ()
    encodings: dict[str, str] = field(default_factory=dict)


def tune_options(
    wanted: TargetLayout, trials: Sequence[TrialWrite], flat: Mapping[str, Leaf], sort_by: Sequence[str]
) -> TunedOptions:
    """Decide.

    Parameters
    ----------
    wanted : TargetLayout
        What is asked for.
    trials : sequence of TrialWrite
        Of some rows.
    flat : mapping of str to Leaf
        The columns that are one leaf.
    sort_by : sequence of str
        Columns that rows are sorted by; of the first one, bounds tell all that a Bloom filter could.

    Returns
    -------
    TunedOptions
    """
    source, arrow, new = (
        sum(getattr(pilot, name) for pilot in trials) for name in ("source_bytes", "arrow_bytes", "new_bytes")
    )
    shrinkage = new / source if source and new else 1.0
    inflation = arrow / new if new and arrow else 1.0
    # Files end between row groups: two of these are to make one at least.
    room = int(wanted.file_bytes * inflation / 2)
    row_group_bytes = max(min(room, ROW_GROUP_BYTES), MIN_ROW_GROUP_BYTES)
    bloom = wanted.bloom_filters
    if bloom is None:
        bloom = tuple(name for name in _selective_columns(trials) if name in flat and name not in sort_by[:1])
    return TunedOptions(shrinkage, row_group_bytes, bloom, _encodings(trials, flat))


def _encodings(trials: Sequence[TrialWrite], flat: Mapping[str, Leaf]) -> dict[str, str]:
    """Give the encodings by which columns are much smaller than by the one that the writer chooses."""
    sizes: dict[str, dict[str, int]] = {}
    for pilot in trials:
        for encoding, leaves in pilot.sizes.items():
            for leaf, size in leaves.items():
                of_leaf = sizes.setdefault(leaf, {})
                of_leaf[encoding] = of_leaf.get(encoding, 0) + size
    found = {}
    for leaf, of_leaf in sizes.items():
        best = min(of_leaf, key=lambda encoding: of_leaf[encoding])
        if leaf not in flat or _is_unsigned(flat[leaf]):  # Spark's vectorized reader cannot read these
            continue
        if best and of_leaf[best] < _MUCH_SMALLER * of_leaf.get("", 0):
            found[leaf] = best
    return found


def _is_unsigned(leaf: Leaf) -> bool:
    return leaf.logical is not None and leaf.logical.kind == "INTEGER" and not leaf.logical.signed


def _selective_columns(trials: Sequence[TrialWrite]) -> list[str]:
    """Give the columns with nearly as many different values as there are values."""
    counts: dict[str, tuple[int, int]] = {}
    for pilot in trials:
        for name, column in pilot.columns.items():
            values, distinct = counts.get(name, (0, 0))
            counts[name] = values + column.values, distinct + column.distinct
    return [
        name
        for name, (values, distinct) in counts.items()
        if values >= _MIN_VALUES and distinct >= _DISTINCT_SHARE * values
    ]
