"""The profile of a dataset, as text, as a rich table and as HTML."""

from __future__ import annotations

from typing import Any

from numparq.util.pluralize import pluralize

from .figures import ProfileFigures
from .render import to_html, to_rich, to_text


class Profile(ProfileFigures):
    """Profile of a dataset.

    Attributes
    ----------
    path : str
        Path as given.
    num_files, num_row_groups, num_rows : int
        Number of files, including unreadable ones; row groups and rows of the others.
    size : int
        Bytes of the files that could be read.
    compressed, uncompressed : int
        Bytes of their column chunks, as stored and before compression.
    columns : tuple of ColumnProfile
        Leaf columns in schema order, then partition columns.
    writers : dict of str to int
        Number of files by writer.
    sorted_by : dict of str to int
        Number of row groups by declared sort order.
    smallest_file, largest_file : int
        Bytes.
    damaged_files : int
        Number of files of which something could not be read.
    troubles : tuple of str
        The first error messages.
    advice : tuple of str
        Advice on a cheaper layout, in words.
    """

    def __str__(self) -> str:
        return to_text(self)

    def __repr__(self) -> str:
        counts = (
            f"{pluralize(self.num_files, 'file')}, {pluralize(self.num_rows, 'row')}, "
            f"{pluralize(len(self.columns), 'column')}"
        )
        return f"<Profile of {self.path}: {counts}>"

    def __rich__(self) -> Any:
        return to_rich(self)

    def _repr_html_(self) -> str:
        return to_html(self)
