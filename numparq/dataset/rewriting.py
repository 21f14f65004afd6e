"""What is to be rewritten of a dataset: which folders lie badly, their rows in pieces, what new files are like."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import SchemaError
from ..opened import OpenedFile
from ..schema import Schema
from ..shred.arrow_message import arrow_message
from ..shred.given import GivenColumn, GivenSchema
from .chosen_partitions import files_where
from .fields import arrow_field_of, fields_of, node_of
from .files import DataFile, Listing, list_files
from .globs import has_magic
from .layout import FileFacts, Folder, WantedLayout, folders_of
from .opening import open_files
from .splits import Split, SplitTable, split_table

__all__ = ["NewFiles", "Piece", "Rewriting", "binned", "pieces_of", "survey"]

_AT_ONCE = 1024  # files that are open together while their footers are looked at


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that are all for one folder.

    Parameters
    ----------
    folder : str
        Its name.
    split : Split
        The rows.
    """

    folder: str
    split: Split


@dataclass(frozen=True)
class Rewriting:
    """What is to be rewritten.

    Parameters
    ----------
    listing : Listing
        All files of the dataset.
    folders : list of Folder
        Those that are to be laid out anew.
    fine : list of Folder
        Those that may stay as they are.
    keys : tuple of str
        The partition columns.
    """

    listing: Listing
    folders: list[Folder]
    fine: list[Folder]
    keys: tuple[str, ...]

    @property
    def files(self) -> list[FileFacts]:
        """The files that go."""
        return [file for folder in self.folders for file in folder.files]

    @property
    def paths(self) -> list[str]:
        """Their paths."""
        return [file.file.path for file in self.files]

    def table(self, columns: Sequence[str] | None, split_bytes: int, storage_options: dict | None = None) -> SplitTable:
        """Divide their rows, all columns that are in files, partition columns excepted.

        Parameters
        ----------
        columns : sequence of str, or None
            Only these.
        split_bytes : int
            What a split has at most, about.
        storage_options : dict, optional
            Not used where the listing knows the file system.
        """
        return split_table(
            self.paths, columns, partitioning=None, split_bytes=split_bytes, filesystem=self.listing.filesystem,
            storage_options=None if self.listing.filesystem is not None else storage_options,
        )  # fmt: skip


def survey(
    path: Any, wanted: WantedLayout, *, where: Any = None, force: bool = False,
    storage_options: dict[str, Any] | None = None, filesystem: Any = None,
) -> Rewriting:  # fmt: skip
    """Look at all footers of a dataset, and say which folders are not laid out as they should be.

    Parameters
    ----------
    path : str or os.PathLike
        A directory.
    wanted : WantedLayout
        As they should be.
    where : expression, list of tuples, or str, optional
        Only folders of such partitions; it may ask of partition columns only.
    force : bool
        Whether folders are rewritten that are laid out well.
    storage_options, filesystem
        As in `numparq.read_parquet`.

    Raises
    ------
    ValueError
        When `where` asks of something else, or the path is that of one file, or a pattern.
    """
    is_name = isinstance(path, (str, os.PathLike))
    if not is_name or (has_magic(os.fsdecode(path)) and not os.path.isdir(path)):
        raise ValueError(f"a dataset is a directory, which {path!r} is not")
    listing = list_files(path, storage_options=storage_options, filesystem=filesystem)
    if listing.is_one:
        raise ValueError(f"a dataset is a directory, and {os.fsdecode(path)!r} is a file")
    files = list(listing.files) if where is None else files_where(listing, "hive", where)
    folders = folders_of(listing, _facts(listing, files, storage_options))
    fine = [folder for folder in folders if not folder.num_rows or (not force and wanted.has(folder))]
    left = {folder.name for folder in fine}
    return Rewriting(listing, [folder for folder in folders if folder.name not in left], fine, listing.keys)


def _facts(listing: Listing, files: Sequence[DataFile], storage_options: dict | None) -> Iterator[FileFacts]:
    known: dict[tuple, tuple] = {}  # the keys of files are mostly the same: one object for all
    for start in range(0, len(files), _AT_ONCE):
        some = list(files[start : start + _AT_ONCE])
        opened = open_files(listing, some, storage_options=storage_options)
        try:
            for facts in map(FileFacts.of, some, opened):
                yield replace(facts, keys=known.setdefault(facts.keys, facts.keys))
        finally:
            for file in opened:
                file.close()


# --- rows in pieces ---------------------------------------------------------------------------------------------------


def pieces_of(table: SplitTable, folder_of: Callable[[str], str]) -> list[Piece]:
    """Divide splits where folders end.

    Parameters
    ----------
    table : SplitTable
        Of files of any folders.
    folder_of : callable
        Gives the folder of a file, by the path that splits have it under.

    Returns
    -------
    list of Piece
        In the order of the rows.
    """
    pieces = []
    for split in table.splits:
        parts: dict[str, list[Any]] = {}
        for part in split.parts:
            parts.setdefault(folder_of(part.file.path), []).append(part)
        for folder, some in parts.items():
            whole = len(parts) == 1
            size = split.num_bytes if whole else split.num_bytes * len(some) // len(split.parts)
            pieces.append(Piece(folder, Split(tuple(some), _num_rows(some), size)))
    return pieces


def _num_rows(parts: Sequence[Any]) -> int | None:
    if any(part.groups is None for part in parts):
        return None
    return sum(group.stop - group.start for part in parts for group in part.groups)


def binned(pieces: Sequence[Piece], bytes_each: int) -> list[list[Piece]]:
    """Put pieces together, those of one folder as evenly as they can be divided.

    Parameters
    ----------
    pieces : sequence of Piece
        Of whole folders, one after the other.
    bytes_each : int
        How much goes together, about.

    Returns
    -------
    list of list of Piece
        In the order of the pieces; none has pieces of two folders.
    """
    bins: list[list[Piece]] = []
    folders: dict[str, list[Piece]] = {}
    for piece in pieces:
        folders.setdefault(piece.folder, []).append(piece)
    for some in folders.values():
        total = sum(piece.split.num_bytes for piece in some)
        count = max(-(-total // max(bytes_each, 1)), 1)
        made: dict[int, list[Piece]] = {}
        before = 0
        for piece in some:
            middle = before + piece.split.num_bytes // 2
            made.setdefault(min(middle * count // max(total, 1), count - 1), []).append(piece)
            before += piece.split.num_bytes
        bins += made.values()
    return bins


# --- what is written --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NewFiles:
    """What new files are like: the columns just as files have them, united, with what their footers say of them.

    Parameters
    ----------
    schema : GivenSchema
        The columns: how they are stored, and what they are in Arrow.
    keys : dict of str to (str or bytes)
        Of the footer, what tells of columns in words of pandas and, where the files had that, of Arrow.
    flat : dict of str to Leaf
        The columns that are one leaf, which rows can be sorted by.
    """

    schema: GivenSchema
    keys: dict[str, str | bytes]
    flat: dict[str, Any]

    @classmethod
    def like(cls, prototype: OpenedFile) -> NewFiles:
        """Take them from a prototype.

        Raises
        ------
        SchemaError
            When a column has nothing in it, which no writer can say.
        """
        fields = fields_of(prototype)
        for name, field in zip(prototype.schema.columns, fields, strict=True):
            if field is None:
                raise SchemaError("a group without fields cannot be written", column=name)
        known = [field for field in fields if field is not None]
        stored = prototype.footer.key_value_metadata
        keys: dict[str, str | bytes] = {}
        notes = _without_range(stored["pandas"]) if "pandas" in stored else None
        if notes is not None:
            keys["pandas"] = notes
        if "ARROW:schema" in stored:
            inner = {} if notes is None else {"pandas": notes}
            keys["ARROW:schema"] = arrow_message([arrow_field_of(field) for field in known], inner)
        columns = {field.name: GivenColumn(node_of(field), arrow_field_of(field)) for field in known}
        return cls(GivenSchema(columns, complete=True), keys, _flat(prototype.schema))


def _flat(schema: Schema) -> dict[str, Any]:
    leaves = ((name, schema.flat_leaf(place)) for place, name in enumerate(schema.columns))
    return {name: leaf for name, leaf in leaves if leaf is not None}


def _without_range(notes: bytes) -> str | None:
    """Leave out of pandas' notes what they say of a range that is the index: it is that of one of the old files."""
    try:
        document = json.loads(notes)
        kept = [level for level in document.get("index_columns", []) if not isinstance(level, dict)]
    except (ValueError, AttributeError, TypeError):
        return None
    return json.dumps({**document, "index_columns": kept})
