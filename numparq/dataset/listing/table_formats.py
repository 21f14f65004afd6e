"""Table formats of other systems, recognised by their metadata folders: Delta Lake, Hudi, Iceberg, streaming sinks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from numparq.errors import UnsupportedError
from numparq.io.filesystem import ResolvedPaths, resolve_paths
from numparq.typing import PathOrBuffer, StorageOptions

from .files import DirectoryListing
from .local import LocalLister
from .patterns import is_hidden

if TYPE_CHECKING:
    from .sink_log import Lister

TABLE_FORMATS = ("auto", "parquet")


class _TableFormat(NamedTuple):
    """Table format: its name with article, the metadata folder in a table's root, and what reads and writes it."""

    name: str
    folder: str
    read_with: str
    write_with: str


_DELTA = _TableFormat(
    "a Delta Lake table",
    "_delta_log",
    "deltalake: DeltaTable(path).to_pandas()",
    "deltalake: write_deltalake(path, df)",
)
_HUDI = _TableFormat(
    "a Hudi table", ".hoodie", "hudi: HudiTableBuilder.from_base_uri(path).build().read()", "Hudi itself, on Spark"
)
_ICEBERG = _TableFormat(
    "an Iceberg table",
    "metadata",
    "pyiceberg: catalog.load_table(name).scan().to_pandas()",
    "pyiceberg: catalog.load_table(name).append(table)",
)
_SINK = _TableFormat("a streaming sink of Spark", "_spark_metadata", "Spark", "the streaming query")

_BY_FOLDER = {kind.folder: kind for kind in (_DELTA, _HUDI, _ICEBERG, _SINK)}
# Hudi marks each partition too, whose folders need not be named key=value.
_BY_FILE = {".hoodie_partition_metadata": _HUDI}
_ICEBERG_FILE = re.compile(r".+\.metadata\.json(\.gz)?|.+\.gz\.metadata\.json|version-hint\.text")
_ICEBERG_DATA = "data"


def check_table_format(table_format: str) -> bool:
    """Check the option; return whether table formats are recognised."""
    if table_format not in TABLE_FORMATS:
        raise ValueError(f"table_format must be {' or '.join(map(repr, TABLE_FORMATS))}, not {table_format!r}")
    return table_format == "auto"


# --- writes -----------------------------------------------------------------------------------------------------------


def check_plain_folder(place: ResolvedPaths, table_format: str) -> None:
    """Raise UnsupportedError if a folder to write is, or is inside, a table of another system."""
    if check_table_format(table_format):
        lister = _lister(place)
        folders = [path.rstrip("/") or path[:1] for path in place.paths]
        _refuse_writing(_TableFinder(lister).tables_above(folders, is_listed=False))


def _lister(resolved: ResolvedPaths) -> Lister:
    if resolved.filesystem is None:
        return LocalLister()
    from .remote import RemoteLister

    return RemoteLister(resolved.filesystem)


def check_plain_file(
    path: PathOrBuffer | None, table_format: str, storage_options: StorageOptions = None, filesystem: object = None
) -> None:
    """Raise UnsupportedError if a local file to write, or the target of its link, is in a table of another system."""
    if not check_table_format(table_format) or not isinstance(path, (str, os.PathLike)):
        return
    if filesystem is not None and not (hasattr(filesystem, "cat_file") or hasattr(filesystem, "open_input_file")):
        return  # it only writes, and is not the local one
    place = resolve_paths([path], storage_options, filesystem)
    if place.filesystem is None:
        name = os.path.abspath(place.paths[0])
        names = (name, os.path.realpath(name)) if os.path.islink(name) else (name,)
        folders = dict.fromkeys(map(os.path.dirname, names))
        _refuse_writing(_TableFinder(LocalLister()).tables_above(folders, is_listed=False))


def check_no_table_below(listing: DirectoryListing, base: str, table_format: str) -> None:
    """Raise UnsupportedError if a folder to write, whose listing is given, has such a table in it."""
    if check_table_format(table_format):
        _refuse_writing(_tables_below(listing, base))


def _refuse_writing(tables: dict[str, _TableFormat]) -> None:
    for root, kind in tables.items():
        raise UnsupportedError(
            f"the folder belongs to {kind.name}, which plain files would damage; write it with {kind.write_with}, "
            'or pass table_format="parquet" to write plain files nevertheless',
            file=root,
        )


# --- reads ------------------------------------------------------------------------------------------------------------


class TableFileSelector:
    """Selects the files of listings that are data; what is looked up is looked up once."""

    def __init__(self, lister: Lister, table_format: str) -> None:
        self._lister = lister
        self._is_auto = check_table_format(table_format)
        self._finder = _TableFinder(lister)
        self._logs: dict[str, frozenset[str]] = {}

    def select(self, listing: DirectoryListing, base: str | None) -> DirectoryListing:
        """Return the files that are data, by the log of a streaming sink; UnsupportedError for other tables.

        ``base`` is the directory that was listed as a whole; None for listed names and the matches of a pattern.
        """
        below = {} if base is None else _tables_below(listing, base)
        if not self._is_auto:
            metadata = tuple(f"{root}/{_ICEBERG.folder}/" for root, kind in below.items() if kind is _ICEBERG)
            return _with_paths(listing, [path for path in listing.paths if not path.startswith(metadata)])
        folders = [base] if base is not None else sorted({path.rpartition("/")[0] for path in listing.paths})
        tables = self._finder.tables_above(folders, is_listed=base is not None)
        tables |= {self._lister.spellings(root)[0]: kind for root, kind in below.items()}
        for root, kind in tables.items():
            if kind is not _SINK:
                raise UnsupportedError(
                    f"the path belongs to {kind.name}, whose metadata decide which files are data; read it with "
                    f'{kind.read_with}, or pass table_format="parquet" to read all files as they are',
                    file=root,
                )
            from .sink_log import read_sink_log, select_sink_files

            if root not in self._logs:
                self._logs[root] = read_sink_log(self._lister, root)
            listing = _with_paths(listing, select_sink_files(root, self._logs[root], listing.paths, base, self._lister))
        return listing


def _with_paths(listing: DirectoryListing, paths: list[str]) -> DirectoryListing:
    return DirectoryListing(paths, listing.entries, listing.hidden)


# --- recognition ------------------------------------------------------------------------------------------------------


def _tables_below(listing: DirectoryListing, base: str) -> dict[str, _TableFormat]:
    """Return the tables at and below a listed directory, by their roots."""
    start = base if not base or base.endswith("/") else base + "/"
    found: dict[str, _TableFormat] = {}
    for entry in listing.hidden:
        parts = entry.path[len(start) :].split("/")  # a directory ends with ""
        hidden = (at for at, part in enumerate(parts) if is_hidden(part, at < len(parts) - 1))
        depth = next(hidden, 0)  # what is below a hidden directory is no data
        is_directory = depth < len(parts) - 1
        kind = _BY_FOLDER.get(parts[depth]) if is_directory else _BY_FILE.get(parts[depth])
        if kind is not None:
            found[_join(start, parts[:depth])] = kind
    for path in listing.paths:
        if path.endswith((".json", ".gz", ".text")):
            *above, folder, name = ["", *path[len(start) :].split("/")]
            if folder == _ICEBERG.folder and _ICEBERG_FILE.fullmatch(name):
                found[_join(start, above[1:])] = _ICEBERG
    return found


def _join(start: str, parts: list[str]) -> str:
    return (start + "/".join(parts)).rstrip("/") or start[:1] or "."


class _TableFinder:
    """Finds the tables that directories are in; each possible metadata folder is looked up once."""

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        self._tables: dict[tuple[str, _TableFormat], bool] = {}

    def tables_above(self, folders: Iterable[str], *, is_listed: bool) -> dict[str, _TableFormat]:
        """Return the formats of tables by their roots; ``is_listed`` if `_tables_below` covers the directories."""
        possible = list(dict.fromkeys(place for folder in folders for place in self._candidates(folder, is_listed)))
        paths = {_metadata_path(*place): place for place in possible if place not in self._tables}
        there = {paths[path] for path in self._lister.existing_directories(list(paths))}
        self._tables |= {place: place in there and self._is_table(*place) for place in paths.values()}
        return {root: kind for root, kind in possible if self._tables[root, kind]}

    def _candidates(self, folder: str, is_listed: bool) -> Iterator[tuple[str, _TableFormat]]:
        """Yield the directories that may be roots, with each possible format."""
        if isinstance(self._lister, LocalLister):
            for root in self._lister.spellings(folder):
                while root:
                    yield from ((root, kind) for kind in _BY_FOLDER.values())
                    root = root.rpartition("/")[0]
            return
        root = folder  # a look-up is a request here: only the directory above all partitions is looked up
        while "=" in root.rpartition("/")[2]:
            root = root.rpartition("/")[0]
        if root != folder or not is_listed:
            yield from ((root, kind) for kind in _BY_FOLDER.values())
        above, _, name = root.rpartition("/")
        if name == _ICEBERG_DATA:
            yield above, _ICEBERG

    def _is_table(self, root: str, kind: _TableFormat) -> bool:
        """Whether a metadata folder is one: other folders may be called "metadata"."""
        if kind is not _ICEBERG:
            return True
        try:
            return any(map(_ICEBERG_FILE.fullmatch, self._lister.names(_metadata_path(root, kind))))
        except OSError:
            return False


def _metadata_path(root: str, kind: _TableFormat) -> str:
    return f"{root.rstrip('/')}/{kind.folder}"
