"""`Store`: a data-skipping store, opened from its folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeAlias

from numparq.dataset.discover.files import DatasetListing, list_files
from numparq.dataset.discover.open_files import open_files
from numparq.dataset.listing.file_filter import ListingOptions
from numparq.errors import ParquetError, UnsupportedError
from numparq.expr.filters import as_expression
from numparq.expr.normalize import normalize
from numparq.format.key_values.spark import SPARKS_CALENDAR
from numparq.typing import FileSystem, Filters, PathLike, StorageOptions

from .clause import NO_REASON, Clause
from .location import store_folder, table_identifier
from .metadata import StoreIndex, StoreSchema
from .part import StorePart, row_groups_of
from .partition_columns import PartitionColumns
from .selection import StoreSelection

Opening: TypeAlias = Any

_OPTIONS = ListingOptions(table_format="parquet", may_be_empty=True)


class Store:
    """A data-skipping store: for each file of a dataset, what its columns hold.

    Parameters
    ----------
    folder : str or os.PathLike
        Folder of the store.
    storage_options, filesystem
        As in `numparq.read_parquet`.

    Attributes
    ----------
    folder : str
        As given.

    Notes
    -----
    Stores of Xskipper are read in versions 1 to 4. A store of version 0 is described, but skips nothing.
    """

    def __init__(
        self, folder: PathLike, *, storage_options: StorageOptions = None, filesystem: FileSystem = None
    ) -> None:
        self.folder = os.fspath(folder)
        self._opening = {"storage_options": storage_options, "filesystem": filesystem}
        self._parts: list[StorePart] | None = None
        self._listed: Any = None
        self.damaged: list[ParquetError] = []

    @classmethod
    def find(cls, base: PathLike, dataset: PathLike, **opening: Opening) -> Store:
        """Return the store of a dataset below a base folder.

        Parameters
        ----------
        base : str or os.PathLike
            Folder of stores, as Xskipper's ``mdlocation``.
        dataset : str or os.PathLike
            Path or URI of the dataset, as it was indexed.
        **opening
            Other arguments of the class.

        Returns
        -------
        Store
        """
        return cls(store_folder(os.fspath(base), table_identifier(os.fspath(dataset))), **opening)

    def list_parts(self) -> DatasetListing:
        """List the files of the store."""
        return list_files(self.folder, partitioning=None, options=_OPTIONS, **self._opening)

    def parts(self) -> list[StorePart]:
        """Return the parts, opened; those that cannot be read are in `damaged`.

        Raises UnsupportedError if a part has a later version than numparq reads.
        """
        listing = self.list_parts()
        files = list(listing.files)
        token = [(file.path, file.size, file.version) for file in files]
        if self._parts is None or token != self._listed:
            self._parts, self._listed = self._open(listing, files), token
        return self._parts

    def _open(self, listing: DatasetListing, files: Sequence[Any]) -> list[StorePart]:
        self.damaged = []
        try:
            return [StorePart(file) for file in open_files(listing, files, calendar=SPARKS_CALENDAR)]
        except UnsupportedError:
            raise
        except (ParquetError, FileNotFoundError):
            pass
        parts = []
        for file in files:  # one by one: what can be read is sound alone
            try:
                parts += [StorePart(each) for each in open_files(listing, [file], calendar=SPARKS_CALENDAR)]
            except UnsupportedError:
                raise
            except ParquetError as error:
                self.damaged.append(error)
            except FileNotFoundError:
                continue  # a refresh has replaced it
        return parts

    @property
    def schema(self) -> StoreSchema:
        """Schema of the newest part."""
        parts = self.parts()
        if not parts:
            raise FileNotFoundError(f"there is no data-skipping store in {self.folder}")
        return max(parts, key=lambda part: part.schema.version).schema

    @property
    def indexes(self) -> list[StoreIndex]:
        """The indexes of all parts, each once."""
        known = {(index.name, index.columns): index for part in self.parts() for index in part.schema.indexes}
        return list(known.values())

    def select(self, filters: Filters) -> StoreSelection:
        """Return what the store says of a filter, for all files that it knows.

        Parameters
        ----------
        filters : expression, str, or list of tuples
            As in `numparq.read_parquet`.

        Returns
        -------
        StoreSelection
            Names of files, without the modification times that are part of their ids.
        """
        expression = normalize(as_expression(filters))
        reasons: list[str] = []
        known: dict[str, list[bool]] = {}
        why: dict[str, int] = {}
        for rows in row_groups_of(self.parts()):
            columns = PartitionColumns(rows)
            inside, rest = columns.split(expression)
            may, reason = Clause(rest, reasons).evaluate(rows, columns.answer)
            for name, *answers, ordinal in zip(
                rows.object_names, inside.tolist(), may.tolist(), reason.tolist(), strict=True
            ):
                if name is not None:
                    known.setdefault(name, []).append(bool(answers[0]) and bool(answers[1]))
                    if not all(answers):
                        why[name] = ordinal if answers[0] else _OUTSIDE
        return _selection(known, why, reasons)

    def __repr__(self) -> str:
        return f"<numparq.skipping.Store {self.folder!r}>"


_OUTSIDE = -2


def _selection(known: dict[str, list[bool]], why: dict[str, int], reasons: Sequence[str]) -> StoreSelection:
    """Build the selection: a file is skipped if all its rows rule it out."""
    matching, skipped, outside = [], [], []
    counts: dict[str, int] = {}
    for name, answers in known.items():
        path = name.rpartition("#")[0]
        if any(answers):
            matching.append(path)
        elif why[name] == _OUTSIDE:
            outside.append(path)
        else:
            skipped.append(path)
            reason = reasons[why[name]] if why[name] != NO_REASON else "several rows"
            counts[reason] = counts.get(reason, 0) + 1
    return StoreSelection(sorted(matching), sorted(skipped), sorted(outside), [], counts)
