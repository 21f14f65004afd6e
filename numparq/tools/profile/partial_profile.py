"""Partial profiles of some files of a dataset, merged by addition in any order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from numparq.prune.lookup_model import PrunableContainers
from numparq.skipping.summary.value_summary import Addable, ValueSummary, merge_dicts, merge_max, merge_min

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
class PartialColumnProfile(Addable):
    """Profile of one column over some files.

    Attributes
    ----------
    position : (int, int)
        Ordinal of the first file with the column, and of the leaf in it; the order of the profile's columns.
    counts : Counter
        Sums with the names of `ColumnProfile`, and ``"nulls_unknown"``, ``"nans_unknown"`` (values of chunks whose
        count is unknown), ``"distinct_in_files"`` (distinct values, file by file), ``"dictionary_pages"``, ``"paged"``
        (chunks whose footer counts pages), ``"text_bytes"``, ``"text_values"`` (BYTE_ARRAY values of known length).
    names : dict of str to Counter
        Number of chunks by ``"types"``, ``"codecs"``, ``"encodings"`` and ``"distrusted"``, and of data pages by
        ``"page_encodings"``.
    min_length, max_length : int or None
        Bytes of the shortest and longest value, where data or dictionaries were read.
    values, kinds : dict
        By name of the value kind.
    row_groups : dict of int to PrunableContainers
        By file ordinal; the costs are bytes of all columns, row groups, and pages of this column (0: unknown).
    """

    position: tuple[int, int]
    is_nested: bool = False
    is_index: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    names: dict[str, Counter[Any]] = field(default_factory=lambda: defaultdict(Counter))
    min_length: int | None = None
    max_length: int | None = None
    values: dict[str, ValueSummary] = field(default_factory=dict)
    kinds: dict[str, Any] = field(default_factory=dict)
    row_groups: dict[int, PrunableContainers] = field(default_factory=dict)

    _merges: ClassVar = {
        "position": min,
        "is_nested": max,
        "is_index": max,
        "names": merge_dicts,
        "min_length": merge_min,
        "max_length": merge_max,
        "values": merge_dicts,
        "kinds": dict.__or__,
        "row_groups": dict.__or__,
    }


@dataclass
class PartialProfile(Addable):
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

    _merges: ClassVar = {
        "files": dict.__or__,
        "troubles": lambda one, two: tuple(sorted(one + two)[:_MAX_TROUBLES]),
        "troubled": merge_dicts,
        "columns": merge_dicts,
    }

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
