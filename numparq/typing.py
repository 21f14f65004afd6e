"""Types of public parameters."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, TypeAlias, TypedDict, Union

from .util.column_name import ColumnName as ColumnName
from .util.column_name import Columns as Columns

if TYPE_CHECKING:
    import pandas as pd

    from .expr.column import ColumnReference
    from .expr.expression import Expression
    from .expr.runtime_filter import RuntimeFilter
    from .format.file_encryption import FileKeys

PathLike: TypeAlias = str | os.PathLike[str]
# A path, a URL, the bytes of a file, or a file object opened for binary reading or writing.
PathOrBuffer: TypeAlias = PathLike | bytes | bytearray | memoryview | BinaryIO
# Also a directory, a glob, or a list of files.
PathOrPaths: TypeAlias = PathOrBuffer | Sequence[PathOrBuffer]


class ArrowExpression(Protocol):
    """An expression of pyarrow.compute, which need not be installed."""

    def is_valid(self) -> object:
        """Return an expression that is true for values other than null."""


FilterTuple: TypeAlias = tuple[ColumnName, str, Any]
# An expression of `numparq.col` or of pyarrow, text, a list of tuples (all hold), or a list of such lists (any holds).
Filters: TypeAlias = Union[
    "Expression",
    "ColumnReference",
    "ArrowExpression",
    str,
    Sequence[FilterTuple],
    Sequence[Sequence[FilterTuple]],
    None,
]

RuntimeFilters: TypeAlias = Iterable["RuntimeFilter"]
# First row and exclusive end; None is the start or the end of the table.
RowRange: TypeAlias = tuple[int | None, int | None] | range | slice | None

Codec: TypeAlias = Literal[
    "none", "uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4", "lz4_raw", "lz4_hadoop",
    "NONE", "UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4", "LZ4_RAW", "LZ4_HADOOP",
]  # fmt: skip
# One codec (None: uncompressed), or codecs by column.
Compression: TypeAlias = Codec | Mapping[str, Codec | None] | None
# One value for all columns, or values by column.
CompressionLevel: TypeAlias = int | Mapping[str, int | None] | None
Encoding: TypeAlias = Literal[
    "PLAIN", "RLE", "RLE_DICTIONARY", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
    "BYTE_STREAM_SPLIT", "ALP",
]  # fmt: skip
ColumnEncoding: TypeAlias = Encoding | Mapping[str, Encoding | None] | None
DataPageVersion: TypeAlias = Literal["1.0", "2.0"]
ColumnOrderName: TypeAlias = Literal["type", "ieee754", "nan_free"]
# All columns or none, some columns by name, or flags by column.
ColumnFlags: TypeAlias = bool | Collection[str] | Mapping[str, bool]
# A name, (name, descending), (name, descending, nulls_first), or an object like `pyarrow.parquet.SortingColumn`.
SortingColumns: TypeAlias = Sequence[Any] | None


class ArrowStream(Protocol):
    """Rows of any library as an Arrow stream: polars.DataFrame, pyarrow.Table, a relation of duckdb."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


FrameOrArrow: TypeAlias = Union["pd.DataFrame", ArrowStream]

DtypeBackend: TypeAlias = Literal["numpy_nullable", "pyarrow"]
# That of the methods of files and datasets.
AnyDtypeBackend: TypeAlias = Literal["numpy", "numpy_nullable", "pyarrow"]
Include: TypeAlias = Sequence[Literal["file", "row_group", "row_number", "position"]]
Dates: TypeAlias = Literal["objects", "datetime64"]
Geometries: TypeAlias = Literal["wkb", "geopandas"]
Variants: TypeAlias = Literal["values", "bytes"]
Files: TypeAlias = Literal["references", "bytes"]
OnError: TypeAlias = Literal["raise", "skip"]
Resolve: TypeAlias = Literal["name", "position", "field_id"]
TableFormat: TypeAlias = Literal["auto", "parquet"]
ExistingDataBehavior: TypeAlias = Literal["error", "overwrite_or_ignore", "delete_matching"]
StorageOptions: TypeAlias = dict[str, Any] | None
# A file system of fsspec or pyarrow.
FileSystem: TypeAlias = Any


class EncryptionKeys(Protocol):
    """Keys of files to write, such as `numparq.Encryption`."""

    def file_keys(
        self, paths: Sequence[tuple[str, ...]], material_names: Callable[[], Collection[str]] | None = None
    ) -> FileKeys:
        """Return the keys of a file with these leaf columns; SchemaError for a name that matches none.

        `material_names` returns names in the file of key material that are in use; None: no such file can be written.
        """

    def may_encrypt(self, column: str) -> bool:
        """Whether a column, or any leaf column of it, may be encrypted."""


class EncodingOptions(TypedDict, total=False):
    """Options of columns besides their codec, as in `numparq.to_parquet`."""

    compression_level: CompressionLevel
    use_dictionary: ColumnFlags
    column_encoding: ColumnEncoding
    use_byte_stream_split: ColumnFlags
    dictionary_pagesize_limit: int
    data_page_size: int | None
    max_rows_per_page: int
    data_page_version: DataPageVersion
    write_statistics: ColumnFlags
    write_page_index: bool
    write_page_checksum: bool
    bloom_filter_options: bool | Mapping[str, Any] | None
    column_order: ColumnOrderName


class ColumnWriteOptions(EncodingOptions, total=False):
    """Options of columns, which `numparq.ParquetWriter` passes on."""

    compression: Compression


class RowGroupOptions(TypedDict, total=False):
    """Options of row groups and of the footer, as in `numparq.ParquetWriter`."""

    row_group_size: int | None
    row_group_bytes: int | None
    row_group_alignment: int | None
    sorting_columns: SortingColumns
    key_value_metadata: Mapping[str, str | bytes] | None
    store_schema: bool
    checkpoint_row_groups: int | None
    append: bool
    encryption: EncryptionKeys | str | None


class FileOptions(ColumnWriteOptions, RowGroupOptions, total=False):
    """Options of each file of a dataset, which `numparq.DatasetWriter` passes on."""


class FileArguments(FileOptions, total=False):
    """Arguments of `numparq.ParquetWriter` that are passed by name."""

    schema: Any
    storage_options: StorageOptions
    filesystem: FileSystem
    threads: int | None
    progress: bool


class IndexingOptions(TypedDict, total=False):
    """Options of `numparq.skipping.Store.build` that are passed by name."""

    threads: int | None
    progress: bool
    storage_options: StorageOptions
    filesystem: FileSystem


class WriteOptions(EncodingOptions, RowGroupOptions, total=False):
    """Options of `numparq.to_parquet` that are passed by name."""

    existing_data_behavior: ExistingDataBehavior
    max_rows_per_file: int | None
    max_bytes_per_file: int | None
    write_metadata_file: bool
    keep_replaced: float
    skipping: Any
    table_format: TableFormat
    schema: Any
    storage_options: StorageOptions
    filesystem: FileSystem
    threads: int | None
    progress: bool
