"""Partial profiles of some files of a dataset, merged by addition in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from .distinct import DistinctSketch

__all__ = [
    "FileSizes",
    "FileTrouble",
    "PartialColumnProfile",
    "PartialProfile",
    "PrunableRowGroups",
    "ValueSummary",
    "merge_profiles",
]

_MAX_TROUBLES = 20


class FileSizes(NamedTuple):
    """A file: its bytes, rows, row groups, and the bytes of its column chunks as stored and uncompressed."""

    size: int
    rows: int
    row_groups: int
    compressed: int
    uncompressed: int


class FileTrouble(NamedTuple):
    """What could not be read: the ordinal and name of the file, and the message of the error."""

    file: int
    name: str
    message: str


class PrunableRowGroups(NamedTuple):
    """The row groups of one file, as far as they concern look-ups on one column; each array has an item a run.

    A run is a row group, or several neighbours of a file that has very many.

    Attributes
    ----------
    kind : str
        Of the column's values, by name: bounds of different kinds are not compared.
    lows, highs : array of keys
        Bounds.
    known : bool array
        Whether they are there.
    rows : int64 array
        Values, nulls not counted; those of which it is not known how many are nulls count as values.
    num_bytes, row_groups, pages : int64 array
        What a look-up may read: bytes of all columns, row groups, pages of this column (0: not known).
    share, page_share : float64 array
        Of the bytes, and of the pages, what one look-up reads of a run that has the value.
    bloom_bytes : int64 array
        Of Bloom filters; 0 where a row group of the run has none.
    """

    kind: str
    lows: np.ndarray
    highs: np.ndarray
    known: np.ndarray
    rows: np.ndarray
    num_bytes: np.ndarray
    row_groups: np.ndarray
    pages: np.ndarray
    share: np.ndarray
    page_share: np.ndarray
    bloom_bytes: np.ndarray


@dataclass
class ValueSummary:
    """The values of one kind that a column has.

    Parameters
    ----------
    low, high : key or None
        The smallest and the largest bound; None where no chunk has any.
    low_exact, high_exact : bool
        Whether that is a value that occurs.
    bounded : int
        Values (not null, not NaN) in chunks that have bounds.
    unbounded : int
        Values, or what may be some, in chunks without bounds.
    sketch : DistinctSketch
        Of the values of chunks whose values, or dictionaries, were read.
    counted : int
        Values of these chunks.
    uncounted : int
        Values of the others.
    is_certain : bool
        Whether each value of the sketch occurs; a dictionary may have others, too.
    """

    low: Any = None
    high: Any = None
    low_exact: bool = False
    high_exact: bool = False
    bounded: int = 0
    unbounded: int = 0
    sketch: DistinctSketch = field(default_factory=DistinctSketch)
    counted: int = 0
    uncounted: int = 0
    is_certain: bool = True

    def __add__(self, other: ValueSummary) -> ValueSummary:
        low, low_exact = _outer_bound(self.low, self.low_exact, other.low, other.low_exact, is_low=True)
        high, high_exact = _outer_bound(self.high, self.high_exact, other.high, other.high_exact, is_low=False)
        return ValueSummary(
            low,
            high,
            low_exact,
            high_exact,
            self.bounded + other.bounded,
            self.unbounded + other.unbounded,
            self.sketch + other.sketch,
            self.counted + other.counted,
            self.uncounted + other.uncounted,
            self.is_certain and other.is_certain,
        )


def _outer_bound(one: Any, one_exact: bool, two: Any, two_exact: bool, is_low: bool) -> tuple[Any, bool]:
    """Give the outer one of two bounds; of equal ones it is a value if either is."""
    if one is None or two is None:
        return (two, two_exact) if one is None else (one, one_exact)
    if one == two:
        return one, one_exact or two_exact
    return (one, one_exact) if (one < two) == is_low else (two, two_exact)


@dataclass
class PartialColumnProfile:
    """What is known of one column of some files.

    Parameters
    ----------
    place : (int, int)
        The first file that has it, and its ordinal in that: columns are shown in this order.
    types, codecs, encodings, page_encodings, distrusted : Counter
        How many chunks have each; of pages, how many pages as far as the footers tell; of bugs of writers that make
        statistics worthless, how many chunks suffer from each.
    is_nested : bool
        Whether it is within lists or groups: nulls then are whatever makes a place empty.
    chunks, num_values, compressed, uncompressed : int
        Column chunks, their values (nulls counted), and bytes.
    nulls, nulls_unknown : int
        Nulls, and values of chunks of which it is not known how many are nulls.
    nans, nans_unknown : int
        NaNs, and values of chunks of which it is not known.
    with_statistics, with_column_index, with_offset_index, with_bloom, with_dictionary, only_dictionary, read : int
        Chunks that have each; that are dictionary-encoded throughout; whose data was read.
    bloom_bytes : int
        Of Bloom filters.
    pages, dictionary_pages, paged : int
        Data pages, those of them with dictionary indices, and chunks that tell them.
    pages_in_order, pages_out_of_order : int
        Chunks whose pages, by their bounds, follow each other or not.
    in_order, out_of_order : int
        Chunks whose values do, or do not; of those whose data was read.
    declared : int
        Row groups that are said to be sorted by this column first.
    text_bytes, text_values : int
        Bytes and number of values of chunks whose lengths are known.
    shortest, longest : int or None
        Bytes of values, where data or dictionaries were read.
    values : dict of str to ValueSummary
        By the names of kinds.
    kinds : dict of str to Kind
        Likewise.
    runs : dict of int to PrunableRowGroups
        By the ordinals of files.
    """

    place: tuple[int, int]
    types: Counter = field(default_factory=Counter)
    codecs: Counter = field(default_factory=Counter)
    encodings: Counter = field(default_factory=Counter)
    page_encodings: Counter = field(default_factory=Counter)
    distrusted: Counter = field(default_factory=Counter)
    is_nested: bool = False
    chunks: int = 0
    num_values: int = 0
    compressed: int = 0
    uncompressed: int = 0
    nulls: int = 0
    nulls_unknown: int = 0
    nans: int = 0
    nans_unknown: int = 0
    with_statistics: int = 0
    with_column_index: int = 0
    with_offset_index: int = 0
    with_bloom: int = 0
    with_dictionary: int = 0
    only_dictionary: int = 0
    read: int = 0
    bloom_bytes: int = 0
    pages: int = 0
    dictionary_pages: int = 0
    paged: int = 0
    pages_in_order: int = 0
    pages_out_of_order: int = 0
    in_order: int = 0
    out_of_order: int = 0
    declared: int = 0
    text_bytes: int = 0
    text_values: int = 0
    shortest: int | None = None
    longest: int | None = None
    values: dict[str, ValueSummary] = field(default_factory=dict)
    kinds: dict[str, Any] = field(default_factory=dict)
    runs: dict[int, PrunableRowGroups] = field(default_factory=dict)

    def __add__(self, other: PartialColumnProfile) -> PartialColumnProfile:
        merged = {name: _MERGES.get(name, _add)(getattr(self, name), getattr(other, name)) for name in _COLUMN_FIELDS}
        return PartialColumnProfile(**merged)


def _add(one: Any, two: Any) -> Any:
    return one + two


def _merge_adding(one: dict, two: dict) -> dict:
    """Join dicts; what both have is added up."""
    return {**one, **{key: one[key] + value if key in one else value for key, value in two.items()}}


def _merge_disjoint(one: dict, two: dict) -> dict:
    return {**one, **two}


def _min_present(one: int | None, two: int | None) -> int | None:
    return min((each for each in (one, two) if each is not None), default=None)


def _max_present(one: int | None, two: int | None) -> int | None:
    return max((each for each in (one, two) if each is not None), default=None)


_COLUMN_FIELDS = tuple(entry.name for entry in fields(PartialColumnProfile))
_MERGES: dict[str, Any] = {
    "place": min,
    "is_nested": lambda one, two: one or two,
    "values": _merge_adding,
    "kinds": _merge_disjoint,
    "runs": _merge_disjoint,
    "shortest": _min_present,
    "longest": _max_present,
}


@dataclass
class PartialProfile:
    """What is known of some files of a dataset; parts of different files add up by ``+``, in any order.

    Parameters
    ----------
    files : dict of int to FileSizes
        Those whose footers were read, by their ordinals.
    writers : Counter
        How many files each program wrote, as it calls itself.
    sorted_by : Counter
        How many row groups are said to be sorted by what.
    troubles : tuple of FileTrouble
        The first things that could not be read, in the order of the files.
    troubled : dict of int to int
        By the ordinals of files, how much of each could not be read.
    columns : dict of (tuple of str) to PartialColumnProfile
        By the paths of leaves.
    """

    files: dict[int, FileSizes] = field(default_factory=dict)
    writers: Counter = field(default_factory=Counter)
    sorted_by: Counter = field(default_factory=Counter)
    troubles: tuple[FileTrouble, ...] = ()
    troubled: dict[int, int] = field(default_factory=dict)
    columns: dict[tuple[str, ...], PartialColumnProfile] = field(default_factory=dict)

    def __add__(self, other: PartialProfile) -> PartialProfile:
        return PartialProfile(
            _merge_disjoint(self.files, other.files),
            self.writers + other.writers,
            self.sorted_by + other.sorted_by,
            tuple(sorted(self.troubles + other.troubles)[:_MAX_TROUBLES]),
            _merge_adding(self.troubled, other.troubled),
            _merge_adding(self.columns, other.columns),
        )

    @classmethod
    def failed(cls, file: int, name: str, messages: list[str]) -> PartialProfile:
        """Make that of a file of which something could not be read."""
        troubles = tuple(sorted(FileTrouble(file, name, message) for message in messages)[:_MAX_TROUBLES])
        return cls(troubles=troubles, troubled={file: len(messages)})


def merge_profiles(parts: Sequence[PartialProfile]) -> PartialProfile:
    """Add up parts, neighbours first, so that none is copied more often than there are levels."""
    found = list(parts)
    while len(found) > 1:
        found = [sum(found[at + 1 : at + 2], found[at]) for at in range(0, len(found), 2)]
    return found[0] if found else PartialProfile()
