"""Choose row group size, encodings and Bloom filters from trial writes of sampled rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc

from numparq.dataset.splits.reader import SplitReader
from numparq.file.readable_file import ReadableFile
from numparq.file.writer import ParquetWriter
from numparq.format.schema import Leaf

from .layout import TargetLayout
from .rewrite_plan import RewritePiece

_TRIAL_ROWS = 65_536
# Encodings that all readers know but decode more slowly, so the writer does not choose them.
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

# With other codecs than Snappy, point look-ups read a third of the bytes that they read with the writer's default.
ROWS_PER_PAGE = 5000
# A Bloom filter prunes row groups, not pages: smaller row groups read less of a column that it does not prune.
ROWS_WITH_BLOOM_FILTERS = 1 << 17
# Limits of a row group's size in memory; a task holds it twice, as rows and encoded.
ROW_GROUP_BYTES, MIN_ROW_GROUP_BYTES = 128 << 20, 1 << 20
# Share of distinct values in a sample from which a Bloom filter is worth its bytes: with fewer, most row groups contain
# every value and the filter hardly prunes.
_DISTINCT_SHARE = 0.5
_MIN_VALUES = 1000
# A slower encoding must shrink a column below this share of its size in the writer's choice.
_MUCH_SMALLER = 0.85


class SampledCardinality(NamedTuple):
    """Number of values and of distinct values in sampled rows of a column."""

    values: int
    distinct: int


@dataclass
class TrialWrite:
    """Sizes and cardinalities of sampled rows, read and written to memory.

    Attributes
    ----------
    source_bytes, arrow_bytes, new_bytes : float
        Size of the rows in the existing files, in memory as Arrow, and in new column chunks.
    columns : dict of str to SampledCardinality
        Columns of types for which point look-ups are common.
    sizes : dict of str to dict of str to int
        Encoding (empty: chosen by the writer) -> dotted path of the leaf column -> compressed bytes.
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
    """Read the first rows of a piece, sort them, and write them to memory with each trial encoding."""
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
    """Write rows to memory; return the compressed bytes of each leaf column."""
    with ParquetWriter(None, threads=1, **options) as writer:
        writer.write(table)
    with ReadableFile(writer.getvalue()) as file:
        groups = np.arange(file.num_row_groups)
        return {
            ".".join(leaf.path): int(file.footer.chunks["total_compressed_size"][groups, leaf.index].sum())
            for leaf in file.schema
        }


def _sorted(table: pa.Table, sort_by: Sequence[str]) -> pa.Table:
    """Sort rows if Arrow can sort these types; only sizes depend on it."""
    try:
        return table.sort_by([(name, "ascending") for name in sort_by]) if sort_by else table
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):  # extension types raise ArrowTypeError
        return table


@dataclass(frozen=True)
class TunedOptions:
    """Writer options chosen from trial writes.

    Attributes
    ----------
    shrinkage : float
        Estimated bytes of new files for each byte of the old ones.
    row_group_bytes : int
        Approximate size of a row group in memory.
    bloom_filters : tuple of str
        Columns that get a Bloom filter.
    encodings : dict of str to str
        Dotted path of a leaf column -> encoding, where it differs from the writer's choice.
    """

    shrinkage: float = 1.0
    row_group_bytes: int = ROW_GROUP_BYTES
    bloom_filters: tuple[str, ...] = ()
    encodings: dict[str, str] = field(default_factory=dict)


def tune_options(
    wanted: TargetLayout, trials: Sequence[TrialWrite], flat: Mapping[str, Leaf], sort_by: Sequence[str]
) -> TunedOptions:
    """Choose writer options for a target layout from trial writes.

    The first column of `sort_by` gets no Bloom filter: its bounds prune as well. `flat` has the columns with one leaf.
    """
    source, arrow, new = (
        sum(getattr(pilot, name) for pilot in trials) for name in ("source_bytes", "arrow_bytes", "new_bytes")
    )
    shrinkage = new / source if source and new else 1.0
    inflation = arrow / new if new and arrow else 1.0
    # Files end between row groups: at least two row groups a file keep it near its target size.
    room = int(wanted.file_bytes * inflation / 2)
    row_group_bytes = max(min(room, ROW_GROUP_BYTES), MIN_ROW_GROUP_BYTES)
    bloom = wanted.bloom_filters
    if bloom is None:
        bloom = tuple(name for name in _selective_columns(trials) if name in flat and name not in sort_by[:1])
    return TunedOptions(shrinkage, row_group_bytes, bloom, _encodings(trials, flat))


def _encodings(trials: Sequence[TrialWrite], flat: Mapping[str, Leaf]) -> dict[str, str]:
    """Return the encodings that make leaf columns much smaller than the writer's choice."""
    sizes: dict[str, dict[str, int]] = {}
    for pilot in trials:
        for encoding, leaves in pilot.sizes.items():
            for leaf, size in leaves.items():
                of_leaf = sizes.setdefault(leaf, {})
                of_leaf[encoding] = of_leaf.get(encoding, 0) + size
    found = {}
    for leaf, of_leaf in sizes.items():
        best = min(of_leaf, key=lambda encoding: of_leaf[encoding])
        if leaf not in flat or _is_unsigned(flat[leaf]):  # Spark's vectorized reader fails on unsigned leaves
            continue
        if best and of_leaf[best] < _MUCH_SMALLER * of_leaf.get("", 0):
            found[leaf] = best
    return found


def _is_unsigned(leaf: Leaf) -> bool:
    return leaf.logical is not None and leaf.logical.kind == "INTEGER" and not leaf.logical.signed


def _selective_columns(trials: Sequence[TrialWrite]) -> list[str]:
    """Return the columns whose sampled values are mostly distinct."""
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
