"""`Store`: a data-skipping store, opened from its folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, Unpack

from numparq.dataset.discover.files import DatasetListing, list_files
from numparq.dataset.discover.open_files import open_files
from numparq.dataset.listing.file_filter import ListingOptions
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.prune.file_query import FileQuery
from numparq.dataset.prune.pruners import FilePruner
from numparq.errors import InvalidFileError, ParquetError, UnsupportedError
from numparq.expr.filters import as_expression
from numparq.expr.normalize import normalize
from numparq.format.key_values.spark import SPARKS_CALENDAR
from numparq.typing import FileSystem, Filters, IndexingOptions, PathLike, StorageOptions

from .build_target import DatasetTarget, remove_file
from .clause import NO_REASON, Clause
from .description import StoreDescription, describe_parts
from .indexes.definitions import IndexDefinition
from .location import store_folder, table_identifier
from .metadata import StoreIndex, StoreSchema
from .part import StorePart, row_groups_of
from .partition_columns import PartitionColumns
from .pruner import StorePruner, select_listed
from .refresh import OpenedParts, StoreChange, StoreUpdate, check_definitions, definitions_of
from .selection import StoreSelection

Opening: TypeAlias = Any
_TRIES = 3  # to commit beside other refreshes

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
    damaged : list of ParquetError
        Errors of the parts that could not be read.
    last_change : StoreChange
        Result of the last build, refresh or compaction by this object.

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
        self.last_change = StoreChange()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parts": None, "_listed": None, "damaged": [], "last_change": StoreChange()}

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

    def for_query(self, query: FileQuery) -> FilePruner | None:
        """Return the file pruner of a query; None if nothing is filtered, or columns are not matched by name.

        Parameters
        ----------
        query : FileQuery
            The query of a dataset.

        Returns
        -------
        FilePruner or None
        """
        pruner = StorePruner(self.parts, query) if query.resolve == "name" else None
        return None if pruner is None or pruner.keeps_all else pruner

    def select(self, filters: Filters, dataset: PathLike | None = None) -> StoreSelection:
        """Return what the store says of a filter.

        Parameters
        ----------
        filters : expression, str, or list of tuples
            As in `numparq.read_parquet`.
        dataset : str or os.PathLike, optional
            Dataset whose files are judged as they are now, by a listing. Default: all files that the store knows.

        Returns
        -------
        StoreSelection
            Names of files, without the modification times that are part of their ids.
        """
        if dataset is not None:
            return select_listed(self.parts, DatasetTarget(dataset, self._opening).listing, filters)
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

    # --- changes ------------------------------------------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        dataset: PathLike,
        *,
        base: PathLike | None = None,
        folder: PathLike | None = None,
        indexes: Sequence[IndexDefinition] | None = None,
        **options: Unpack[IndexingOptions],
    ) -> Store:
        """Build the store of a dataset: read each file once, and commit all rows together.

        Parameters
        ----------
        dataset : str or os.PathLike
            Directory of Parquet files.
        base : str or os.PathLike, optional
            Folder of stores, in which the store's folder has the name that Xskipper looks for.
        folder : str or os.PathLike, optional
            Folder of the store itself, in place of `base`.
        indexes : sequence of MinMax, ValueList or BloomFilter, optional
            What to keep. Default: MinMax of each flat column with an order, which needs footers alone.
        **options
            ``threads``, ``progress``, ``storage_options`` and ``filesystem``, as in `numparq.read_parquet`.

        Returns
        -------
        Store
            The store; `last_change` names the files that could not be indexed, which every query reads.

        Raises
        ------
        FileExistsError
            If there is a store already; `refresh` it, or `drop` it.
        """
        threads, progress = options.pop("threads", None), options.pop("progress", False)
        opening: dict[str, Any] = {"storage_options": None, "filesystem": None, **options}
        target = DatasetTarget(dataset, opening)
        if (base is None) == (folder is None):
            raise ValueError("either base or folder is needed")
        path = store_folder(os.fspath(base), target.identifier) if base is not None else os.fspath(folder)  # type: ignore[arg-type]
        target.check_outside(path)
        store = cls(path, **opening)
        if store._parts_if_any():
            raise FileExistsError(f"there is a data-skipping store in {path}; refresh() or drop() it")
        definitions = target.default_indexes() if indexes is None else list(indexes)
        check_definitions(definitions)
        update = target.update(path, opening, definitions, threads, progress)
        store.last_change = update.index_all(target.listing, target.partitions)
        return store

    def refresh(
        self, dataset: PathLike | None = None, *, threads: int | None = None, progress: bool = False
    ) -> StoreChange:
        """Index the files that are new or changed; rewrite the store if many rows or parts are superfluous.

        Parameters
        ----------
        dataset : str or os.PathLike, optional
            The dataset; by default where the store says that it is.
        threads, progress
            As in `numparq.read_parquet`.

        Returns
        -------
        StoreChange
        """
        return self._change(dataset, threads, progress, StoreUpdate.refresh)

    def compact(
        self, dataset: PathLike | None = None, *, threads: int | None = None, progress: bool = False
    ) -> StoreChange:
        """Refresh the store, and write all of it again, in the latest version and in few parts.

        Parameters
        ----------
        dataset, threads, progress
            As in `refresh`.

        Returns
        -------
        StoreChange
        """
        return self._change(dataset, threads, progress, StoreUpdate.compact)

    def _change(
        self,
        dataset: PathLike | None,
        threads: int | None,
        progress: bool,
        do: Callable[[StoreUpdate, DatasetListing, DatasetPartitions, OpenedParts], StoreChange],
    ) -> StoreChange:
        for tries_left in range(_TRIES - 1, -1, -1):
            self._parts = None
            parts = self.parts()
            known = self.dataset if dataset is None else os.fspath(dataset)
            target = DatasetTarget(known, self._opening)
            definitions = definitions_of(self.indexes, self.folder)
            update = target.update(self.folder, self._opening, definitions, threads, progress)
            opened = OpenedParts(parts, [str(error.where["file"]) for error in self.damaged])
            try:
                self.last_change = do(update, target.listing, target.partitions, opened)
            except (InvalidFileError, FileNotFoundError, BlockingIOError):  # another refresh was faster
                if not tries_left:
                    raise
            else:
                break
        return self.last_change

    def drop(self) -> None:
        """Remove the store. A query that reads it meanwhile skips fewer files."""
        listing = self.list_parts()
        for file in listing.files:
            remove_file(listing.filesystem, file.path)
        if listing.filesystem is None:
            with contextlib.suppress(OSError):  # other files stay
                os.rmdir(self.folder)
        self._parts = None

    def _parts_if_any(self) -> list[StorePart]:
        try:
            return self.parts()
        except FileNotFoundError:
            return []

    @property
    def dataset(self) -> str:
        """Path or URI of the dataset.

        Raises ValueError if the store, which another program built, does not say where its file system is.
        """
        own = next((part.own for part in self.parts() if part.own is not None), None)
        if own is not None:
            return own.dataset
        identifier = self.schema.identifier
        if not os.path.isdir(identifier):
            raise ValueError(f"the store is of {identifier!r}, which is no local directory; pass the dataset's path")
        return identifier

    def describe(self) -> StoreDescription:
        """Return what the store holds: version, dataset, files, parts and indexes; its text is a table.

        Returns
        -------
        StoreDescription
        """
        return describe_parts(self.folder, self.parts(), [str(error) for error in self.damaged])

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
