"""`numparq schema`, `meta` and `head`: print the schema, the footer and the first rows of a file or a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console

from numparq.dataset.dataset import Dataset
from numparq.dataset.discover.files import is_dataset_path
from numparq.file.readable_file import ReadableFile
from numparq.format.thrift.decode import Record
from numparq.typing import TableFormat
from numparq.util.pluralize import pluralize

from .terminal import open_console, print_table

_TITLES = ("column", "type", "codec", "encodings", "values", "nulls", "compressed", "uncompressed")
_LIST_COLUMN = 3
_MAX_CELL = 50  # characters of a value of `head` in a terminal, as in pandas


def _open(path: str, table_format: TableFormat) -> ReadableFile | Dataset:
    """Open a file, or a directory or glob as a dataset."""
    return Dataset(path, table_format=table_format) if is_dataset_path(path) else ReadableFile(path)


def schema(file: str, table_format: TableFormat) -> None:
    """Print the schema as a tree, and the partition columns of a dataset."""
    with _open(file, table_format) as table:
        print(table.schema)
        if isinstance(table, Dataset) and table.partition_keys:
            print(f"partition columns: {', '.join(table.partition_keys)}")


def meta(file: str, table_format: TableFormat) -> None:
    """Print the footer: row groups, key-values, and a table of the columns; those of all files of a dataset."""
    console = open_console()
    chunks = _ColumnChunks()
    with _open(file, table_format) as table:
        if isinstance(table, Dataset):
            _add_files(chunks, table)
            keys = f", partitioned by {', '.join(table.partition_keys)}" if table.partition_keys else ""
            _print_line(console, f"{file}: {pluralize(len(table.files), 'file')}, {chunks.summary}{keys}")
        else:
            chunks.add(table)
            version, writer = table.metadata.version, table.metadata.created_by or "an unknown writer"
            _print_line(console, f"{file}: {chunks.summary}, version {version}, written by {writer}")
            for pair in table.metadata.key_value_metadata or ():
                _print_line(console, f"  key {pair.key}: {pluralize(len(pair.value or ''), 'character')}")
    print_table(console, _TITLES, list(chunks.rows()), _LIST_COLUMN)


def _add_files(chunks: _ColumnChunks, dataset: Dataset) -> None:
    for name in dataset.files:
        with ReadableFile(name) as parquet:
            chunks.add(parquet)


def _print_line(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, markup=False)


class _ColumnChunks:
    """Column chunks of files, by column: sizes are sums, types and encodings are sets."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[Record]] = {}
        self._num_bytes = self._num_rows = self._num_row_groups = 0

    def add(self, file: ReadableFile) -> None:
        """Add the column chunks of a file."""
        self._num_bytes += file.source.size
        self._num_rows += file.num_rows
        self._num_row_groups += file.num_row_groups
        for group in file.metadata.row_groups:
            for column in group.columns:
                chunk = column.meta_data
                name = "(encrypted)" if chunk is None else ".".join(chunk.path_in_schema)
                self._chunks.setdefault(name, []).extend([] if chunk is None else [chunk])

    @property
    def summary(self) -> str:
        """Size of all files, in bytes, rows and row groups."""
        return (
            f"{pluralize(self._num_bytes, 'byte')}, {pluralize(self._num_rows, 'row')}, row groups: "
            f"{self._num_row_groups:,}"
        )

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the cells of each column."""
        for name, chunks in self._chunks.items():
            nulls = [chunk.statistics.null_count if chunk.statistics else None for chunk in chunks]
            yield (
                name,
                *(_distinct_names(getattr(chunk, field) for chunk in chunks) for field in ("type", "codec")),
                _distinct_names(encoding for chunk in chunks for encoding in chunk.encodings),
                f"{sum(chunk.num_values for chunk in chunks):,}",
                "?" if None in nulls else f"{sum(filter(None, nulls)):,}",
                f"{sum(chunk.total_compressed_size for chunk in chunks):,}",
                f"{sum(chunk.total_uncompressed_size for chunk in chunks):,}",
            )


def _distinct_names(values: Iterable[object]) -> str:
    return ", ".join(dict.fromkeys(getattr(value, "name", str(value)) for value in values))


def head(file: str, n: int, columns: list[str] | None, table_format: TableFormat) -> None:
    """Print the first `n` rows; long values are shortened only in a terminal."""
    with _open(file, table_format) as table:
        frame = table.read(columns, nrows=n)
    console = open_console()
    width, most = (console.width, _MAX_CELL) if console.is_terminal else (None, None)
    print(frame.to_string(line_width=width, max_colwidth=most))
