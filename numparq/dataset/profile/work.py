"""Files that are looked at one after the other; of a damaged one, what is wrong with it is noted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from ...errors import ParquetError
from ...opened import OpenedFile
from ...schema import Leaf
from ..data_files import DataFile
from ..files import Listing
from ..opening import open_files
from .choosing import is_chosen
from .column import Reading
from .one_file import part_of
from .part import Part, merged

__all__ = ["FilesWork"]

_AT_ONCE = 16  # files that are opened together, side by side where they are remote


@dataclass(frozen=True)
class FilesWork:
    """Some of the files of a profile, which any process can find out about; picklable, as what comes out is.

    Parameters
    ----------
    first : int
        Which of the dataset's files the first of them is.
    files : tuple of DataFile
        The files.
    filesystem : fsspec or pyarrow file system, or None
        Where they are; None for the local one.
    columns : tuple of (str or tuple of str), or None
        As in `profile_files`.
    how : Reading
        What is read of each file.
    strict : bool
        Whether a damaged file is an error.
    """

    first: int
    files: tuple[DataFile, ...]
    filesystem: Any
    columns: tuple[str | tuple[str, ...], ...] | None
    how: Reading
    strict: bool

    def part(self) -> Part:
        """Find out about the files.

        Returns
        -------
        Part
            What adds up with those of other files.

        Raises
        ------
        ParquetError, OSError
            With `strict`, when a file cannot be read.
        """
        parts = []
        for start in range(0, len(self.files), _AT_ONCE):
            places = range(start, min(start + _AT_ONCE, len(self.files)))
            for place, file in self._opened(places):
                parts.append(file if isinstance(file, Part) else self._part_of(place, file))
        return merged(parts)

    def _opened(self, places: Sequence[int]) -> Iterator[tuple[int, OpenedFile | Part]]:
        """Open files: all together, or, where one of them cannot be opened, each by itself."""
        try:
            opened: Sequence[OpenedFile | None] = self._open(places)
        except (ParquetError, OSError):
            opened = [None] * len(places)
        for place, file in zip(places, opened, strict=True):
            yield place, self._open_one(place) if file is None else file

    def _open(self, places: Sequence[int]) -> list[OpenedFile]:
        files = [self.files[place] for place in places]
        return open_files(Listing(files, filesystem=self.filesystem), files)  # type: ignore[arg-type]

    def _open_one(self, place: int) -> OpenedFile | Part:
        try:
            return self._open([place])[0]
        except (ParquetError, OSError) as error:
            return self._failed(place, error)

    def _part_of(self, place: int, file: OpenedFile) -> Part:
        try:
            with closing(file):
                found = part_of(file, self.first + place, self.files[place].size, self._wanted, self.how)
        except (ParquetError, OSError) as error:
            return self._failed(place, error)
        if self.strict and found.troubles:
            raise ParquetError(found.troubles[0].message)
        return found

    def _failed(self, place: int, error: Exception) -> Part:
        if self.strict:
            raise error
        return Part.failed(self.first + place, self.files[place].name, [str(error)])

    def _wanted(self, leaves: Sequence[Leaf]) -> Sequence[Leaf]:
        return leaves if self.columns is None else [leaf for leaf in leaves if is_chosen(leaf, self.columns, leaves)]
