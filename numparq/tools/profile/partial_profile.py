"""Partial profiles of some files of a dataset, merged by addition in any order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from numparq.skipping.summary.distinct import DistinctSketch

from .lookup_model import RowGroups

_MAX_TROUBLES = 20


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


@dataclass
class ValueSummary:
    """Values of one kind in a column.

    Attributes
    ----------
    low, high : key or None
        Smallest and largest bound; None if no chunk has bounds.
    low_exact, high_exact : bool
        Whether the bound occurs as a value.
    unbounded, uncounted : int
        Values (not null, not NaN) in chunks without bounds, and in those that are not in the sketch.
    sketch : DistinctSketch
        Distinct values of chunks whose values or dictionaries were read.
    is_certain : bool
        Whether each value of the sketch occurs; dictionaries may have unused entries.
    """

    low: Any = None
    high: Any = None
    low_exact: bool = False
    high_exact: bool = False
    unbounded: int = 0
    uncounted: int = 0
    sketch: DistinctSketch = field(default_factory=DistinctSketch)
    is_certain: bool = True

    def __add__(self, other: ValueSummary) -> ValueSummary:
        low, low_exact = _outer_bound(self.low, self.low_exact, other.low, other.low_exact, is_low=True)
        high, high_exact = _outer_bound(self.high, self.high_exact, other.high, other.high_exact, is_low=False)
        return ValueSummary(
            low,
            high,
            low_exact,
            high_exact,
            self.unbounded + other.unbounded,
            self.uncounted + other.uncounted,
            self.sketch + other.sketch,
            self.is_certain and other.is_certain,
        )


def _outer_bound(one: Any, one_exact: bool, two: Any, two_exact: bool, is_low: bool) -> tuple[Any, bool]:
    """Return the outer of two bounds; equal ones are exact if either is."""
    if one is None or two is None:
        return (two, two_exact) if one is None else (one, one_exact)
    if one == two:
        return one, one_exact or two_exact
    return (one, one_exact) if (one < two) == is_low else (two, two_exact)


def _merge_dicts(one: dict[Any, Any], two: dict[Any, Any]) -> dict[Any, Any]:
    """Merge dicts; add the values of common keys."""
    return one | {key: one[key] + value if key in one else value for key, value in two.items()}


def _merge_extremes(choose: Callable[..., int]) -> Callable[[int | None, int | None], int | None]:
    return lambda one, two: choose((each for each in (one, two) if each is not None), default=None)


merge_min, merge_max = _merge_extremes(min), _merge_extremes(max)


@dataclass
class PartialColumnProfile:
    """Profile of one column over some files.

    Attributes
    ----------
    position : (int, int)
        Ordinal of the first file with the column, and of the leaf in it; the order of the profile's columns.
    counts : Counter
        Sums with the names of `ColumnProfile`, and ``"nulls_unknown"``, ``"nans_unknown"`` (values of chunks whose
        count is unknown), ``"dictionary_pages"``, ``"paged"`` (chunks whose footer counts pages), ``"text_bytes"``,
        ``"text_values"`` (BYTE_ARRAY values with known length).
    names : dict of str to Counter
        Number of chunks by ``"types"``, ``"codecs"``, ``"encodings"`` and ``"distrusted"``, and of data pages by
        ``"page_encodings"``.
    min_length, max_length : int or None
        Bytes of the shortest and longest value, where data or dictionaries were read.
    values, kinds : dict
        By name of the value kind.
    row_groups : dict of int to RowGroups
        By file ordinal.
    """

    position: tuple[int, int]
    is_nested: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    names: dict[str, Counter[Any]] = field(default_factory=lambda: defaultdict(Counter))
    min_length: int | None = None
    max_length: int | None = None
    values: dict[str, ValueSummary] = field(default_factory=dict)
    kinds: dict[str, Any] = field(default_factory=dict)
    row_groups: dict[int, RowGroups] = field(default_factory=dict)

    def __add__(self, other: PartialColumnProfile) -> PartialColumnProfile:
        return PartialColumnProfile(
            *(_MERGES[entry.name](getattr(self, entry.name), getattr(other, entry.name)) for entry in fields(self))
        )


_MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "position": min,
    "is_nested": max,
    "counts": Counter.__add__,
    "names": _merge_dicts,
    "min_length": merge_min,
    "max_length": merge_max,
    "values": _merge_dicts,
    "kinds": dict.__or__,
    "row_groups": dict.__or__,
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
            self.files | other.files,
            self.writers + other.writers,
            self.sorted_by + other.sorted_by,
            tuple(sorted(self.troubles + other.troubles)[:_MAX_TROUBLES]),
            _merge_dicts(self.troubled, other.troubled),
            _merge_dicts(self.columns, other.columns),
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
    merged = list(parts)
    while len(merged) > 1:
        merged = [sum(merged[at + 1 : at + 2], merged[at]) for at in range(0, len(merged), 2)]
    return merged[0] if merged else PartialProfile()
