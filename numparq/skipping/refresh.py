"""Build, refresh and compact a store: which files to index, which parts to replace, and one commit of both."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from numparq.dataset.discover.files import DatasetListing
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.write.shared_job import SharedJob
from numparq.errors import InvalidFileError, ParquetError, SchemaError, UnsupportedError
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY
from numparq.util.arguments import thread_count

from .cell_types import CellType
from .index_files import FileIndexer, FileListing, IndexedFiles, PartitionValuesOfFiles
from .indexes.definitions import BloomFilter, IndexDefinition, definition_of
from .metadata import LATEST_VERSION, StoreIndex, index_column
from .own_metadata import OwnMetadata
from .part import StorePart
from .read_rows import can_be_read, read_rows, value_type
from .rows import BLOOM_TYPES, StoreRow, common_type
from .write import PartLayout, cells_type, divide_rows, write_part

_MOST_PARTS = 8
_STALE_SHARE = 5  # one row in five


@dataclass(frozen=True)
class StoreChange:
    """Result of a build, refresh or compaction.

    Attributes
    ----------
    added, removed : int
        Files that are new in the store, and rows that are no longer there.
    failures : list of (str, str)
        Files without a row, which every query reads, with the reason.
    """

    added: int = 0
    removed: int = 0
    failures: Sequence[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class StoreUpdate:
    """One update of a store.

    Attributes
    ----------
    folder : str
        Folder of the store.
    opening : dict
        Arguments that give the file system of the store.
    dataset : OwnMetadata
        The dataset, for the parts that are written.
    identifier : str
        Table identifier of the dataset.
    definitions : sequence of IndexDefinition
        The indexes.
    threads : int or None
        As in `numparq.read_parquet`.
    progress : bool
        Whether to show a progress bar.
    """

    folder: str
    opening: dict[str, object]
    dataset: OwnMetadata
    identifier: str
    definitions: Sequence[IndexDefinition]
    threads: int | None = None
    progress: bool = False

    def index_all(self, listing: DatasetListing, partitions: DatasetPartitions) -> StoreChange:
        """Index all files of a listing into a folder without a store."""
        return self._update(listing, partitions, [], [], everything=True)

    def refresh(self, listing: DatasetListing, partitions: DatasetPartitions, store: OpenedParts) -> StoreChange:
        """Index the files that the store does not know as they are, and replace parts if they need it."""
        return self._update(listing, partitions, store.parts, store.damaged)

    def compact(self, listing: DatasetListing, partitions: DatasetPartitions, store: OpenedParts) -> StoreChange:
        """Refresh the store, and write all parts again."""
        return self._update(listing, partitions, store.parts, store.damaged, everything=True)

    def _update(
        self,
        listing: DatasetListing,
        partitions: DatasetPartitions,
        parts: Sequence[StorePart],
        damaged: Sequence[str],
        everything: bool = False,
    ) -> StoreChange:
        files = FileListing(listing)
        files.wait()
        plan = _UpdatePlan(files, parts, damaged, everything)
        job = self._begin(plan.gone)
        try:
            values = PartitionValuesOfFiles(listing, partitions)
            old = self._known_rows(plan, values) if plan.gone else IndexedFiles()
            known = {row.object_name for row in old.rows} if plan.gone else plan.known
            missing = [position for name, position in files.positions_of(None).items() if name not in known]
            indexed = FileIndexer(files, self.definitions, values).index(
                missing, thread_count(self.threads), self.progress
            )
            indexed.rows, indexed.types = old.rows + indexed.rows, old.types + indexed.types
            indexed.failures += [
                (file.name, "its time of modification is not known")
                for file, name in zip(files.files, files.ids, strict=True)
                if name is None
            ]
            if indexed.failures and not indexed.rows and not parts:
                name, reason = indexed.failures[0]
                raise UnsupportedError(f"no file can be indexed; the first: {reason}", file=name)
            layout = self._layout(indexed, values, [] if plan.gone else parts)
            if not indexed.rows and parts and not plan.gone:
                job.abort()
                return StoreChange(0, 0, indexed.failures)
            dataset = replace(self.dataset, changed=files.changed)
            messages = [
                write_part(job, number, layout, rows, dataset)
                for number, rows in enumerate(divide_rows(indexed.rows) or [[]])
            ]
            job.commit(messages)
        except BaseException:
            with contextlib.suppress(RuntimeError):
                job.abort()
            raise
        after = {row.object_name for row in indexed.rows} | (set() if plan.gone else plan.names)
        return StoreChange(len(after - plan.names), len(plan.names - after), indexed.failures)

    def _begin(self, gone: Sequence[str]) -> SharedJob:
        return SharedJob.begin(
            self.folder,
            mode="replace" if gone else "append",
            gone=gone,
            table_format="parquet",
            compression="snappy",
            store_schema=False,
            max_rows_per_page=1000,
            **self.opening,  # type: ignore[arg-type]
        )

    def _known_rows(self, plan: _UpdatePlan, values: PartitionValuesOfFiles) -> IndexedFiles:
        """Return the rows of current files, each once, with partition columns as they are now."""
        rows: dict[str, tuple[StoreRow, list[CellType | None]]] = {}
        for part in plan.readable:
            current = plan.positions_in(part)
            try:
                part_rows, types = read_rows(part, self._indexes())
            except ParquetError:
                continue  # its files are indexed again
            for row in part_rows:
                if row.object_name in current:
                    row.partitions = values.values(current[row.object_name])
                    rows[row.object_name] = row, types
        return IndexedFiles([row for row, _ in rows.values()], [types for _, types in rows.values()])

    def _indexes(self) -> list[StoreIndex]:
        indexes = []
        for each in self.definitions:
            column = (each.column.lower(),)
            indexes.append(StoreIndex(each.name, column, index_column(each.name, column), each.params))
        return indexes

    def _layout(
        self, indexed: IndexedFiles, values: PartitionValuesOfFiles, staying: Sequence[StorePart]
    ) -> PartLayout:
        """Return the columns of the parts to write; rows with values of other types than most files' are dropped."""
        indexes = self._indexes()
        types: list[CellType] = []
        self._check_filters(indexed)
        for position, definition in enumerate(self.definitions):
            fixed = [kind for part in staying if (kind := value_type(part, indexes[position])) is not None]
            kinds = fixed or [known for each in indexed.types if (known := each[position]) is not None]
            kind = common_type(kinds) if kinds else _ANY
            if not isinstance(definition, BloomFilter):
                self._drop_others(indexed, position, kind)
            types.append(kind)
        named = [replace(index, type=cells_type(index.name, kind)) for index, kind in zip(indexes, types, strict=True)]
        return PartLayout(self.identifier, values.types, named, types)

    def _check_filters(self, indexed: IndexedFiles) -> None:
        """Raise UnsupportedError for a Bloom filter on a column of which no file has integers or strings."""
        for position, definition in enumerate(self.definitions):
            kinds = {known.spark for each in indexed.types if (known := each[position]) is not None}
            if isinstance(definition, BloomFilter) and kinds and kinds.isdisjoint(BLOOM_TYPES):
                raise UnsupportedError(
                    f"Bloom filters hold integers and strings, not {', '.join(map(str, kinds))}",
                    column=definition.column,
                )

    def _drop_others(self, indexed: IndexedFiles, position: int, kind: CellType) -> None:
        fits = [each[position] in (None, kind) for each in indexed.types]
        indexed.failures += [
            (row.object_name.rpartition("#")[0], f"its {self.definitions[position].column} has another type")
            for row, is_same in zip(indexed.rows, fits, strict=True)
            if not is_same
        ]
        indexed.rows = [row for row, is_same in zip(indexed.rows, fits, strict=True) if is_same]
        indexed.types = [each for each, is_same in zip(indexed.types, fits, strict=True) if is_same]


_ANY = CellType("string", BYTE_ARRAY, 0, LogicalType("STRING"))


class _UpdatePlan:
    """Rows of a store that are of current files, and parts to replace.

    Attributes
    ----------
    names, known : set of str
        Ids in the store; those of files as they are now.
    readable : list of StorePart
        Parts whose rows can be written again.
    gone : list of str
        Paths of the parts to replace: all or none.
    """

    def __init__(
        self, files: FileListing, parts: Sequence[StorePart], damaged: Sequence[str], everything: bool
    ) -> None:
        self._files = files
        self.readable = [part for part in parts if can_be_read(part)]
        named = {id(part): [name for rows in part.row_groups for name in rows.object_names] for part in parts}
        self.names = {name for each in named.values() for name in each if name is not None}
        self.known: set[str] = set()
        num_rows = sum(map(len, named.values()))
        has_changed = False
        for part in self.readable:
            current = self.positions_in(part)
            self.known |= {name for name in named[id(part)] if name in current}
            has_changed |= any(name in files.positions_of(None) and name not in current for name in named[id(part)])
        replaces = (
            everything
            or bool(damaged)
            or has_changed
            or len(self.readable) < len(parts)
            or any(part.schema.version < LATEST_VERSION for part in parts)
            or len(parts) >= _MOST_PARTS
            or (num_rows - len(self.known)) * _STALE_SHARE > num_rows
        )
        self.gone = [*(part.name for part in parts), *damaged] if replaces else []

    def positions_in(self, part: StorePart) -> dict[str, int]:
        """Return the positions of the files that are as a part knows them, by id."""
        return self._files.positions_of(None if part.own is None else part.own.changed)


@dataclass(frozen=True)
class OpenedParts:
    """Parts of a store, and the paths of those that cannot be read."""

    parts: Sequence[StorePart]
    damaged: Sequence[str] = ()


def check_definitions(definitions: Sequence[IndexDefinition]) -> None:
    """Raise ValueError for an index that is there twice, SchemaError for two whose columns readers confuse."""
    known: dict[tuple[str, str], IndexDefinition] = {}
    for each in definitions:
        if known.setdefault((each.name, each.column.lower()), each) is not each:
            raise ValueError(f"there are two indexes {each.name} on {each.column!r}")
    columns = [index_column(each.name, (each.column.lower(),)) for each in definitions]
    for one in columns:
        for other in columns:
            if one != other and other.startswith(one):
                raise SchemaError(f"the store's columns {one!r} and {other!r} begin alike, which Xskipper confuses")


def definitions_of(indexes: Sequence[StoreIndex], folder: str) -> list[IndexDefinition]:
    """Return the definitions of a store's indexes; InvalidFileError if one cannot be built."""
    definitions = []
    for index in indexes:
        definition = definition_of(index)
        if definition is None:
            raise InvalidFileError(
                f"the index {index} cannot be built here, so the store is not refreshed", file=folder
            )
        definitions.append(definition)
    return definitions
