"""What the data decide of new files: how large row groups are, how columns are encoded, which have Bloom filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..dataset.layout import WantedLayout
from ..schema import Leaf
from .optimize_tasks import Pilot

__all__ = ["ROWS_PER_PAGE", "ROWS_WITH_BLOOM_FILTERS", "Choices", "chosen"]

# Look-ups of rows read a third of what they would with pages of the writer's default (docs/writing.md).
ROWS_PER_PAGE = 5000
# A Bloom filter leaves row groups out, not pages: of one that it leaves, the column is read whole.
ROWS_WITH_BLOOM_FILTERS = 1 << 17
# What a row group has in memory at the most; a task holds it once as rows and once as what they are encoded to.
ROW_GROUP_BYTES, LEAST_ROW_GROUP_BYTES = 128 << 20, 1 << 20
# Of a sample of a column, so many values are to be different ones that a Bloom filter is worth its bytes: where there
# are fewer, most row groups have all of them, and a filter would say yes nearly always.
_DISTINCT_SHARE = 0.5
_LEAST_VALUES = 1000
# An encoding that readers are slower with is to make a column at least so small, by its size in the writer's choice.
_MUCH_SMALLER = 0.85


@dataclass(frozen=True)
class Choices:
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


def chosen(wanted: WantedLayout, pilots: Sequence[Pilot], flat: Mapping[str, Leaf], sort_by: Sequence[str]) -> Choices:
    """Decide.

    Parameters
    ----------
    wanted : WantedLayout
        What is asked for.
    pilots : sequence of Pilot
        Of some rows.
    flat : mapping of str to Leaf
        The columns that are one leaf.
    sort_by : sequence of str
        Columns that rows are sorted by; of the first one, bounds tell all that a Bloom filter could.

    Returns
    -------
    Choices
    """
    source, arrow, new = (sum(getattr(pilot, name) for pilot in pilots) for name in
                          ("source_bytes", "arrow_bytes", "new_bytes"))  # fmt: skip
    shrinkage = new / source if source and new else 1.0
    inflation = arrow / new if new and arrow else 1.0
    # Files end between row groups: two of these are to make one at least.
    room = int(wanted.file_bytes * inflation / 2)
    row_group_bytes = max(min(room, ROW_GROUP_BYTES), LEAST_ROW_GROUP_BYTES)
    bloom = wanted.bloom_filters
    if bloom is None:
        bloom = tuple(name for name in _profiting(pilots) if name in flat and name not in sort_by[:1])
    return Choices(shrinkage, row_group_bytes, bloom, _encodings(pilots, flat))


def _encodings(pilots: Sequence[Pilot], flat: Mapping[str, Leaf]) -> dict[str, str]:
    """Give the encodings by which columns are much smaller than by the one that the writer chooses."""
    sizes: dict[str, dict[str, int]] = {}
    for pilot in pilots:
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


def _profiting(pilots: Sequence[Pilot]) -> list[str]:
    """Give the columns with nearly as many different values as there are values."""
    counts: dict[str, tuple[int, int]] = {}
    for pilot in pilots:
        for name, column in pilot.columns.items():
            values, distinct = counts.get(name, (0, 0))
            counts[name] = values + column.values, distinct + column.distinct
    return [name for name, (values, distinct) in counts.items()
            if values >= _LEAST_VALUES and distinct >= _DISTINCT_SHARE * values]  # fmt: skip
