"""Figures of a profile: of a dataset, of its columns, and of look-ups in them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LookupCost:
    """Expected shares of a dataset, from 0 to 1, that a query on one column reads.

    The shares follow from the bounds and Bloom filters in the files.

    Attributes
    ----------
    files, row_groups, num_bytes : float
        Share of files, of row groups, and of the bytes of all columns.
    pages : float or None
        Share of this column's pages; None if their number is unknown.
    """

    files: float
    row_groups: float
    num_bytes: float
    pages: float | None = None


@dataclass(frozen=True)
class ColumnProfile:
    """Profile of one column over all files of a dataset.

    Attributes
    ----------
    name : str
        Dotted path.
    type : str
        Logical type, or the physical type if there is none; several if files differ.
    physical, logical : tuple of str
        All physical and logical types in the files.
    is_nested : bool
        Whether the column is inside a group or list. All empty positions then count as nulls.
    is_index : bool
        Whether pandas metadata say that the column is an index level of the DataFrame.
    is_partition : bool
        Whether the values come from directory names; such a column has no bytes.
    chunks, num_values : int
        Number of column chunks, and of values including nulls.
    nulls, nans : int or None
        Number of nulls and NaNs; None if unknown.
    null_share : float or None
        Share of nulls among all values.
    distinct : int or None
        Number of distinct values without nulls and NaNs; None if unknown.
    distinct_kind : str
        Source of `distinct`: ``"exact"``; ``"dictionary"``, the entries of dictionaries, some of which may be unused;
        ``"estimate"``, with a standard error of 1.2 %; ``"unknown"``.
    distinct_at_least, distinct_at_most : int
        Certain limits of the number of distinct values.
    file_share : float or None
        Mean share of the files that have a given value; None if distinct values are unknown.
    min, max : object or None
        Bounds as Python values; None if unknown, without values, or if the type has no order.
    min_exact, max_exact : bool
        Whether the bound occurs as a value; otherwise no value lies beyond it.
    compressed, uncompressed : int
        Bytes as stored, and before compression.
    share : float
        Share of the bytes of all columns.
    codecs, encodings : dict of str to int
        Number of chunks with each codec and each encoding, including those of levels and dictionaries.
    page_encodings : dict of str to int
        Number of data pages with each encoding of values, as far as footers record it.
    pages : int or None
        Number of data pages; None if unknown.
    dictionary_share : float or None
        Share of these pages with dictionary indices.
    with_statistics, with_column_index, with_offset_index, with_bloom : int
        Number of chunks with each; untrusted indexes do not count.
    bloom_bytes : int
        Bytes of Bloom filters.
    distrusted : dict of str to int
        Writer quirks that make statistics worthless, with the number of chunks.
    mean_length : float or None
        Mean bytes of a string or binary value, where lengths are known.
    min_length, max_length : int or None
        Bytes of the shortest and the longest value, where data or dictionaries were read.
    rows_in_order, rows_out_of_order : int
        Number of chunks whose values ascend or do not, of those whose data was read.
    pages_in_order, pages_out_of_order : int
        Number of chunks with several pages whose bounds ascend or descend, and of those whose bounds do neither.
    files_in_order, files_out_of_order : int
        The same for files with several row groups.
    files_overlapping : int
        Number of files whose range of values overlaps another file's; files without bounds do not count.
    declared : int
        Number of row groups with this column as first sorting column.
    lookup, small_range : LookupCost or None
        Cost of a look-up of one of its values, and of a range with 1 % of the rows; None without files.
    read : int
        Number of chunks whose data was read for the profile.
    """

    name: str
    type: str
    physical: tuple[str, ...] = ()
    logical: tuple[str, ...] = ()
    is_nested: bool = False
    is_index: bool = False
    is_partition: bool = False
    chunks: int = 0
    num_values: int = 0
    nulls: int | None = None
    null_share: float | None = None
    nans: int | None = None
    distinct: int | None = None
    distinct_kind: str = "unknown"
    distinct_at_least: int = 0
    distinct_at_most: int = 0
    file_share: float | None = None
    min: Any = None
    max: Any = None
    min_exact: bool = False
    max_exact: bool = False
    compressed: int = 0
    uncompressed: int = 0
    share: float = 0.0
    codecs: dict[str, int] = field(default_factory=dict)
    encodings: dict[str, int] = field(default_factory=dict)
    page_encodings: dict[str, int] = field(default_factory=dict)
    pages: int | None = None
    dictionary_share: float | None = None
    with_statistics: int = 0
    with_column_index: int = 0
    with_offset_index: int = 0
    with_bloom: int = 0
    bloom_bytes: int = 0
    distrusted: dict[str, int] = field(default_factory=dict)
    mean_length: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    rows_in_order: int = 0
    rows_out_of_order: int = 0
    pages_in_order: int = 0
    pages_out_of_order: int = 0
    files_in_order: int = 0
    files_out_of_order: int = 0
    files_overlapping: int = 0
    declared: int = 0
    lookup: LookupCost | None = None
    small_range: LookupCost | None = None
    read: int = 0

    @property
    def order(self) -> str:
        """Order of the values in rows, pages, row groups and files, in a few words."""
        words = []
        for what, yes, no in (
            ("rows", self.rows_in_order, self.rows_out_of_order),
            ("pages", self.pages_in_order, self.pages_out_of_order),
            ("row groups", self.files_in_order, self.files_out_of_order),
        ):
            if yes + no:
                words.append(f"{what} {'in order' if not no else 'not in order' if not yes else 'partly in order'}")
        if self.files_overlapping:
            words.append("files overlap")
        return ", ".join(words)

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes in JSON types.

        Returns
        -------
        dict
            Dates and decimals are text, bytes are hexadecimal digits.
        """
        return {name: _to_json(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class ProfileFigures:
    """Figures of a dataset and of its columns; `Profile` has the attributes and shows them."""

    path: str
    num_files: int
    num_row_groups: int
    num_rows: int
    size: int
    compressed: int
    uncompressed: int
    columns: tuple[ColumnProfile, ...]
    writers: dict[str, int]
    sorted_by: dict[str, int]
    smallest_file: int
    largest_file: int
    damaged_files: int
    troubles: tuple[str, ...]
    advice: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ColumnProfile:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def __iter__(self) -> Iterator[ColumnProfile]:
        return iter(self.columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return the columns as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            One row for each column, with the index ``column`` and the attributes of `ColumnProfile`. Look-up attributes
            have the prefixes ``lookup_`` and ``range_``.
        """
        import pandas as pd

        rows = []
        for column in self.columns:
            row = {entry.name: getattr(column, entry.name) for entry in fields(column)}
            for name, prefix in (("lookup", "lookup_"), ("small_range", "range_")):
                cost = row.pop(name)
                row |= {prefix + part.name: getattr(cost, part.name, None) for part in fields(LookupCost)}
            rows.append(row)
        frame = pd.DataFrame(rows, index=pd.Index([row.pop("name") for row in rows], name="column"))
        counts = ("nulls", "nans", "distinct", "pages", "min_length", "max_length")
        return frame.astype({name: "Int64" for name in counts if name in frame})

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes in JSON types.

        Returns
        -------
        dict
            As `ColumnProfile.to_dict`; ``"columns"`` is a list of such dicts.
        """
        return {name: _to_json(value) for name, value in vars(self).items()}


def _to_json(value: object) -> object:
    """Return a value in JSON types."""
    if isinstance(value, (ColumnProfile, LookupCost)):
        value = vars(value)
    if isinstance(value, dict):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (datetime.timedelta, Decimal)):
        return str(value)
    return value
