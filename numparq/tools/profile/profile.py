"""The profile of a dataset and of its columns."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ColumnProfile", "LookupCost", "Profile"]


@dataclass(frozen=True)
class LookupCost:
    """The expected shares of a dataset that a query on one column reads, by present bounds and Bloom filters.

    Parameters
    ----------
    files, row_groups, num_bytes : float
        From 0 to 1; the bytes are those of all columns.
    pages : float or None
        Of the pages of this column; None where it is not known how many there are.
    """

    files: float
    row_groups: float
    num_bytes: float
    pages: float | None = None


@dataclass(frozen=True)
class ColumnProfile:
    """What is known of one column, over all files.

    Parameters
    ----------
    name : str
        Its names from the top down, joined by dots.
    type : str
        What its values are: the logical type, or the physical one; several, where files differ.
    physical, logical : tuple of str
        All types that it has in files.
    is_nested : bool
        Whether it is within a group or list; its nulls are then all places that are empty, for whatever reason.
    is_partition : bool
        Whether the directories tell its values; it has no bytes then.
    chunks, num_values : int
        Column chunks, and values, nulls counted.
    nulls, nans : int or None
        How many; None where that is not known.
    null_share : float or None
        Nulls of all values.
    distinct : int or None
        How many different values there are, nulls and NaNs not counted; None where nothing tells.
    distinct_kind : str
        Where that is from: ``"exact"``; ``"dictionary"``, the entries of dictionaries, some of which no row may have;
        ``"estimate"``, with a standard error of 1.2 %; ``"unknown"``.
    distinct_at_least, distinct_at_most : int
        Between which it certainly is.
    min, max : object or None
        Bounds, as Python values; None where they are not known, where there are no values, or where the type has no
        order.
    min_exact, max_exact : bool
        Whether that is a value that occurs; else it is only certain that none lies beyond.
    compressed, uncompressed : int
        Bytes as stored, and before compression.
    share : float
        Of the bytes of all columns of the dataset.
    codecs, encodings, page_encodings : dict of str to int
        How many chunks have each codec and each encoding (those of levels and dictionaries are among them), and how
        many data pages each encoding of values, as far as footers tell.
    pages : int or None
        Data pages; None where they are not told.
    dictionary_share : float or None
        Of these pages, those with dictionary indices.
    with_statistics, with_column_index, with_offset_index, with_bloom : int
        Chunks that have each; indexes that are not to be trusted not counted.
    bloom_bytes : int
        Of Bloom filters.
    distrusted : dict of str to int
        Which bugs of writers make statistics worthless, and of how many chunks.
    mean_length : float or None
        Bytes of a value, of strings and bytes; with `min_length` and `max_length`, where they are known.
    min_length, max_length : int or None
        Of all values of which data or dictionaries were read.
    rows_in_order, rows_out_of_order : int
        Chunks whose values ascend, and those where they do not; of those whose data was read.
    pages_in_order, pages_out_of_order : int
        Chunks with several pages whose bounds follow each other, upwards or downwards, and those where they do not.
    files_in_order, files_out_of_order : int
        Likewise files with several row groups.
    files_overlapping : int
        Files whose range of values overlaps with that of another one; those without bounds not counted.
    declared : int
        Row groups that are said to be sorted by this column first.
    lookup, small_range : LookupCost or None
        What a look-up of one of its values reads, and a range that has 1 % of the rows; None without files.
    read : int
        Chunks whose data was read for the profile.
    """

    name: str
    type: str
    physical: tuple[str, ...] = ()
    logical: tuple[str, ...] = ()
    is_nested: bool = False
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
    min: Any = None
    max: Any = None
    min_exact: bool = False
    max_exact: bool = False
    compressed: int = 0
    uncompressed: int = 0
    share: float = 0.0
    codecs: dict[str, int] | None = None
    encodings: dict[str, int] | None = None
    page_encodings: dict[str, int] | None = None
    pages: int | None = None
    dictionary_share: float | None = None
    with_statistics: int = 0
    with_column_index: int = 0
    with_offset_index: int = 0
    with_bloom: int = 0
    bloom_bytes: int = 0
    distrusted: dict[str, int] | None = None
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
        """How its values lie, in a few words."""
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
        """Give all of it as a dict of what JSON has: dates and decimals as text, bytes as hexadecimal digits."""
        found = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        found |= {name: None if found[name] is None else dict(vars(found[name])) for name in ("lookup", "small_range")}
        return {name: _to_json(value) for name, value in found.items()}


@dataclass(frozen=True)
class Profile:
    """What is in a dataset.

    Parameters
    ----------
    path : str
        What was looked at.
    num_files, num_row_groups, num_rows : int
        Files, damaged ones among them; row groups and rows of the others.
    size : int
        Bytes of the files that could be read.
    compressed, uncompressed : int
        Bytes of their column chunks, as stored and before compression.
    columns : tuple of ColumnProfile
        Leaves in the order of the schema, then partition columns.
    writers : dict of str to int
        How many files each program wrote.
    sorted_by : dict of str to int
        How many row groups are said to be sorted by what.
    smallest_file, largest_file : int
        Bytes.
    damaged_files : int
        Files of which something could not be read.
    troubles : tuple of str
        The first messages.
    advice : tuple of str
        What would make reads cheaper, in words.
    """

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
    advice: tuple[str, ...]

    def __getitem__(self, name: str) -> ColumnProfile:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def __iter__(self) -> Iterator[ColumnProfile]:
        return iter(self.columns)

    def to_pandas(self) -> pd.DataFrame:
        """Give the columns as a DataFrame, a row each, with the index ``column``.

        Returns
        -------
        pandas.DataFrame
            The attributes of `ColumnProfile`; those of look-ups with ``lookup_`` and ``range_`` in front.
        """
        import pandas as pd

        rows = []
        for column in self.columns:
            row = {entry.name: getattr(column, entry.name) for entry in fields(column)}
            for name, prefix in (("lookup", "lookup_"), ("small_range", "range_")):
                found = row.pop(name)
                row |= {prefix + part.name: getattr(found, part.name, None) for part in fields(LookupCost)}
            rows.append(row)
        frame = pd.DataFrame(rows, index=pd.Index([row.pop("name") for row in rows], name="column"))
        counts = ("nulls", "nans", "distinct", "pages", "min_length", "max_length")
        return frame.astype({name: "Int64" for name in counts if name in frame})

    def to_dict(self) -> dict[str, Any]:
        """Give all of it as a dict of what JSON has."""
        found = {entry.name: _to_json(getattr(self, entry.name)) for entry in fields(self) if entry.name != "columns"}
        return found | {"columns": [column.to_dict() for column in self.columns]}

    def __str__(self) -> str:
        from .render import to_text

        return to_text(self)

    def __repr__(self) -> str:
        counts = f"{self.num_files:,} files, {self.num_rows:,} rows, {len(self.columns):,} columns"
        return f"<Profile of {self.path}: {counts}>"

    def __rich__(self) -> Any:
        from .render import to_rich

        return to_rich(self)

    def _repr_html_(self) -> str:
        from .render import to_html

        return to_html(self)


def _to_json(value: Any) -> Any:
    """Give what JSON has in place of a value."""
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
