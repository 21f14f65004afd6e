"""Partial profiles of some files of a dataset, merged by addition in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .distinct import DistinctSketch

_MAX_TROUBLES = 20

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class FileSizes(NamedTuple):
    """Bytes, rows and row groups of a file, and the bytes of its column chunks as stored and uncompressed."""

    size: int
    rows: int
    row_groups: int
    compressed: int
    uncompressed: int


class FileTrouble(NamedTuple):
    """Part of a file that could not be read: ordinal and name of the file, message of the error."""

    file: int
    name: str
    message: str


class PrunableRowGroups(NamedTuple):
    """Row groups of one file for look-ups on one column; one item each, or for several neighbours of a large file.

    Attributes
    ----------
    kind : str
        Name of the value kind; bounds of different kinds do not compare.
    rows : int64 array
        Non-null values; all values where the null count is unknown.
    num_bytes, row_groups, pages : int64 array
        Bytes of all columns, row groups, and pages of this column (0: unknown).
    byte_share, page_share : float64 array
        Share of the bytes and pages that a look-up of a value in the item reads.
    bloom_bytes : int64 array
        Bytes of Bloom filters; 0 if any row group of the item has none.
    """

    kind: str
    lows: np.ndarray
    highs: np.ndarray
    known: np.ndarray
    rows: np.ndarray
    num_bytes: np.ndarray
    row_groups: np.ndarray
    pages: np.ndarray
    byte_share: np.ndarray
    page_share: np.ndarray
    bloom_bytes: np.ndarray


@dataclass
class ValueSummary:
    """Values of one kind in a column.

    Attributes
    ----------
    low, high : key or None
        Smallest and largest bound; None if no chunk has bounds.
    low_exact, high_exact : bool
        Whether the bound occurs as a value.
    bounded, unbounded : int
        Values (not null, not NaN) in chunks with bounds, and in chunks without.
    sketch : DistinctSketch
        Distinct values of chunks whose values or dictionaries were read.
    counted, uncounted : int
        Values of these chunks, and of the others.
    is_certain : bool
        Whether each value of the sketch occurs; dictionaries may have unused entries.
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
    """Return the outer of two bounds; equal ones are exact if either is."""
    if one is None or two is None:
        return (two, two_exact) if one is None else (one, one_exact)
    if one == two:
        return one, one_exact or two_exact
    return (one, one_exact) if (one < two) == is_low else (two, two_exact)


@dataclass
class PartialColumnProfile:
    """Profile of one column over some files.

    Attributes
    ----------
    position : (int, int)
        Ordinal of the first file with the column, and of the leaf in it; the order of the profile's columns.
    types, codecs, encodings, distrusted : Counter
        Number of chunks with each; `distrusted` counts those whose statistics a writer quirk makes worthless.
    page_encodings : Counter
        Number of data pages, as far as footers record it.
    nulls_unknown, nans_unknown : int
        Values of chunks whose null or NaN count is unknown.
    read : int
        Chunks whose data was read.
    pages, dictionary_pages, paged : int
        Data pages, those with dictionary indices, and the chunks whose footer records them.
    pages_in_order, pages_out_of_order : int
        Chunks whose page bounds are in order, and those whose are not.
    in_order, out_of_order : int
        Chunks whose values ascend or do not, of those whose data was read.
    declared : int
        Row groups with the column as first sorting column.
    text_bytes, text_values : int
        Bytes and number of values of BYTE_ARRAY chunks with known length.
    min_length, max_length : int or None
        Bytes of the shortest and longest value, where data or dictionaries were read.
    values, kinds : dict
        By name of the value kind.
    row_groups : dict of int to PrunableRowGroups
        By file ordinal.
    """

    position: tuple[int, int]
    types: Counter[tuple[str, str]] = field(default_factory=Counter)
    codecs: Counter[str] = field(default_factory=Counter)
    encodings: Counter[str] = field(default_factory=Counter)
    page_encodings: Counter[str] = field(default_factory=Counter)
    distrusted: Counter[str] = field(default_factory=Counter)
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
    min_length: int | None = None
    max_length: int | None = None
    values: dict[str, ValueSummary] = field(default_factory=dict)
    kinds: dict[str, Any] = field(default_factory=dict)
    row_groups: dict[int, PrunableRowGroups] = field(default_factory=dict)

    def __add__(self, other: PartialColumnProfile) -> PartialColumnProfile:
        merged = {name: _MERGES.get(name, _add)(getattr(self, name), getattr(other, name)) for name in _COLUMN_FIELDS}
        return PartialColumnProfile(**merged)


def _add(one: Any, two: Any) -> Any:
    return one + two


def _merge_adding(one: dict[Any, Any], two: dict[Any, Any]) -> dict[Any, Any]:
    """Merge dicts; add the values of common keys."""
    return {**one, **{key: one[key] + value if key in one else value for key, value in two.items()}}


def _merge_disjoint(one: dict[_Key, _Value], two: dict[_Key, _Value]) -> dict[_Key, _Value]:
    return {**one, **two}


def _min_present(one: int | None, two: int | None) -> int | None:
    return min((each for each in (one, two) if each is not None), default=None)


def _max_present(one: int | None, two: int | None) -> int | None:
    return max((each for each in (one, two) if each is not None), default=None)


_COLUMN_FIELDS = tuple(entry.name for entry in fields(PartialColumnProfile))
_MERGES: dict[str, Any] = {
    "position": min,
    "is_nested": lambda one, two: one or two,
    "values": _merge_adding,
    "kinds": _merge_disjoint,
    "row_groups": _merge_disjoint,
    "min_length": _min_present,
    "max_length": _max_present,
}


@dataclass
class PartialProfile:
    """Profile of some files of a dataset; partial profiles of different files add up in any order.

    Attributes
    ----------
    files : dict of int to FileSizes
        Files whose footers were read, by file ordinal.
    writers : Counter
        Number of files by `created_by`.
    sorted_by : Counter
        Number of row groups by their declared sort order.
    troubles : tuple of FileTrouble
        At most 20 errors, in the order of the files.
    troubled : dict of int to int
        Number of errors by file ordinal.
    columns : dict of (tuple of str) to PartialColumnProfile
        By path of the leaf column.
    """

    files: dict[int, FileSizes] = field(default_factory=dict)
    writers: Counter[str] = field(default_factory=Counter)
    sorted_by: Counter[str] = field(default_factory=Counter)
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
    def from_errors(cls, file: int, name: str, messages: list[str]) -> PartialProfile:
        """Return the partial profile of errors in one file.

        Parameters
        ----------
        file : int
            Ordinal of the file in the dataset.
        name : str
            Name of the file.
        messages : list of str
            One message for each error.

        Returns
        -------
        PartialProfile
        """
        troubles = tuple(sorted(FileTrouble(file, name, message) for message in messages)[:_MAX_TROUBLES])
        return cls(troubles=troubles, troubled={file: len(messages)})


def merge_profiles(parts: Sequence[PartialProfile]) -> PartialProfile:
    """Add up partial profiles pairwise, so that each is copied only log2(n) times.

    Parameters
    ----------
    parts : sequence of PartialProfile
        Partial profiles of different files.

    Returns
    -------
    PartialProfile
        Empty if `parts` is.
    """
    found = list(parts)
    while len(found) > 1:
        found = [sum(found[at + 1 : at + 2], found[at]) for at in range(0, len(found), 2)]
    return found[0] if found else PartialProfile()
