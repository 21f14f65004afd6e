"""`numparq schema`, `meta` and `head`: print the schema, the footer and the first rows of a file or a dataset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console

from numparq.dataset.dataset import Dataset
from numparq.dataset.discover.files import is_dataset_path
from numparq.errors import DecryptionError
from numparq.file.readable_file import ReadableFile
from numparq.format.footer.read_encryption import read_encryption
from numparq.format.thrift.decode import Record
from numparq.io.open import open_source
from numparq.keys.part_keys import keys_of_single_file
from numparq.typing import TableFormat
from numparq.util.pluralize import pluralize

from .terminal import open_console, print_table

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource

_TITLES = ("column", "type", "codec", "encodings", "values", "nulls", "compressed", "uncompressed")
_LIST_COLUMN = 3
_MAX_CELL = 50  # characters of a value of `head` in a terminal, as in pandas


def _open(path: str, table_format: TableFormat, decryption: KeySource | None) -> ReadableFile | Dataset:
    """Open a file, or a directory or glob as a dataset."""
    if is_dataset_path(path):
        return Dataset(path, table_format=table_format, decryption=decryption)
    return ReadableFile(path, decryption=keys_of_single_file(decryption, path))


def _show(
    file: str, table_format: TableFormat, decryption: KeySource | None, show: Callable[[ReadableFile | Dataset], None]
) -> None:
    """Open a file or a dataset and show it; without keys, how those with an encrypted footer are encrypted."""
    try:
        with _open(file, table_format, decryption) as table:
            show(table)
    except DecryptionError:
        lines = [] if decryption is not None else _describe_locked(file, table_format)
        if not lines:
            raise
        console = open_console()
        for line in lines:
            _print_line(console, f"{file}: {line}")


def _describe_locked(file: str, table_format: TableFormat) -> list[str]:
    """Return lines on how files are encrypted, alike ones together; none if one cannot be opened again, as a pipe."""
    if not is_dataset_path(file):
        return [] if os.path.exists(file) and not os.path.isfile(file) else _describe_file(file, plain=[])
    alike: dict[tuple[str, ...], list[str]] = {}
    with Dataset(file, table_format=table_format) as dataset:
        for name in dataset.files:
            _, *lines = _describe_file(name, plain=["", "not encrypted"])
            alike.setdefault(tuple(lines), []).append(name)
    return [f"{pluralize(len(names), 'file')}, {line}" for lines, names in alike.items() for line in lines]


def _describe_file(file: str, plain: list[str]) -> list[str]:
    """Return a file's size and lines on how it is encrypted; `plain` if it is not."""
    source = open_source(file)
    try:
        encryption = read_encryption(source)
        return plain if encryption is None else [pluralize(source.size, "byte"), *encryption.describe()]
    finally:
        source.close()


def schema(file: str, table_format: TableFormat, decryption: KeySource | None = None) -> None:
    """Print the schema as a tree, the partition columns of a dataset, and how a file is encrypted."""

    def show(table: ReadableFile | Dataset) -> None:
        print(table.schema)
        if isinstance(table, Dataset):
            if table.partition_keys:
                print(f"partition columns: {', '.join(table.partition_keys)}")
        elif table.encryption is not None:
            print(*table.encryption.describe(), sep="\n")

    _show(file, table_format, decryption, show)


def meta(file: str, table_format: TableFormat, decryption: KeySource | None = None) -> None:
    """Print the footer: row groups, key-values, and a table of the columns; those of all files of a dataset."""
    console = open_console()
    chunks = _ColumnChunks()

    def show(table: ReadableFile | Dataset) -> None:
        if isinstance(table, Dataset):
            _add_files(chunks, table, decryption)
            keys = f", partitioned by {', '.join(table.partition_keys)}" if table.partition_keys else ""
            _print_line(console, f"{file}: {pluralize(len(table.files), 'file')}, {chunks.summary}{keys}")
        else:
            chunks.add(table)
            version, writer = table.metadata.version, table.metadata.created_by or "an unknown writer"
            _print_line(console, f"{file}: {chunks.summary}, version {version}, written by {writer}")
            for pair in table.metadata.key_value_metadata or ():
                _print_line(console, f"  key {pair.key}: {pluralize(len(pair.value or ''), 'character')}")
            for line in table.encryption.describe() if table.encryption is not None else ():
                _print_line(console, f"  {line}")
        print_table(console, _TITLES, list(chunks.rows()), _LIST_COLUMN)

    _show(file, table_format, decryption, show)


def _add_files(chunks: _ColumnChunks, dataset: Dataset, decryption: KeySource | None) -> None:
    for name in dataset.files:
        with ReadableFile(name, decryption=keys_of_single_file(decryption, name)) as parquet:
            chunks.add(parquet)


def _print_line(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, markup=False)


class _ColumnChunks:
    """Column chunks of files, by column: sizes are sums, types and encodings are sets."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[Record | None]] = {}  # None: encrypted, and its key is not known
        self._num_bytes = self._num_rows = self._num_row_groups = 0

    def add(self, file: ReadableFile) -> None:
        """Add the column chunks of a file."""
        self._num_bytes += file.source.size
        self._num_rows += file.num_rows
        self._num_row_groups += file.num_row_groups
        names = [file.schema.leaf(index).name for index in range(file.schema.num_leaves)]
        for group in file.metadata.row_groups:
            for name, column in zip(names, group.columns, strict=True):
                self._chunks.setdefault(name, []).append(column.meta_data)

    @property
    def summary(self) -> str:
        """Size of all files, in bytes, rows and row groups."""
        return (
            f"{pluralize(self._num_bytes, 'byte')}, {pluralize(self._num_rows, 'row')}, row groups: "
            f"{self._num_row_groups:,}"
        )

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the cells of each column."""
        for name, readable in self._chunks.items():
            chunks = [chunk for chunk in readable if chunk is not None]
            if not chunks:
                yield name, "(encrypted)", "", "", *"?" * 4
                continue
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


def head(
    file: str, n: int, columns: list[str] | None, table_format: TableFormat, decryption: KeySource | None = None
) -> None:
    """Print the first `n` rows; long values are shortened only in a terminal."""
    with _open(file, table_format, decryption) as table:
        frame = table.read(columns, nrows=n)
    console = open_console()
    width, most = (console.width, _MAX_CELL) if console.is_terminal else (None, None)
    print(frame.to_string(line_width=width, max_colwidth=most))
