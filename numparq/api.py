"""Public functions `read_parquet` and `to_parquet`."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from .column.write.options import DICTIONARY_PAGE_SIZE, MAX_ROWS_PER_PAGE
from .dataset.listing.table_formats import check_plain_file
from .dataset.open_table import open_table
from .errors import UnsupportedError, short_traceback
from .file.argument_advice import READ_ADVICE, WRITE_ADVICE
from .scan.options import ScanOptions
from .types.choose import resolve_dtype_backend
from .typing import (
    ColumnEncoding,
    ColumnFlags,
    ColumnName,
    ColumnOrderName,
    Columns,
    Compression,
    CompressionLevel,
    DataPageVersion,
    Dates,
    DtypeBackend,
    ExistingDataBehavior,
    Files,
    Filters,
    FrameOrArrow,
    Geometries,
    Include,
    OnError,
    PathOrBuffer,
    PathOrPaths,
    Resolve,
    RowRange,
    RuntimeFilters,
    SortingColumns,
    StorageOptions,
    TableFormat,
    Variants,
    WriteOptions,
)
from .util.arguments import explain_unknown_arguments

if TYPE_CHECKING:
    import pandas as pd

    from .io.coalesce import Coalescing

# Options of `to_parquet` that make a dataset, or apply to one only.
_DATASET_OPTIONS = (
    "partition_cols", "existing_data_behavior", "max_rows_per_file", "max_bytes_per_file", "write_metadata_file",
    "keep_replaced", "table_format",
)  # fmt: skip


@short_traceback
@explain_unknown_arguments(READ_ADVICE)
def read_parquet(
    path: PathOrPaths,
    columns: Columns = None,
    filters: Filters = None,
    *,
    runtime_filters: RuntimeFilters = (),
    explode: ColumnName | None = None,
    dtype_backend: DtypeBackend | None = None,
    storage_options: StorageOptions = None,
    filesystem: Any = None,
    coalescing: Coalescing | None = None,
    row_groups: Sequence[int] | None = None,
    row_range: RowRange = None,
    nrows: int | None = None,
    partitioning: Any = "hive",
    schema: Any = None,
    resolve: Resolve = "name",
    categories: Collection[str] | None = None,
    table_format: TableFormat = "auto",
    include: Include = (),
    dates: Dates = "objects",
    geometries: Geometries = "wkb",
    variants: Variants = "values",
    files: Files = "references",
    decryption: object = None,
    verify_crc: bool = True,
    on_error: OnError = "raise",
    memory_limit: int | None = None,
    threads: int | None = None,
    progress: bool = False,
    external_files: bool = False,
) -> pd.DataFrame:
    """Read a Parquet file, or many as one table, into a DataFrame.

    The result equals ``pandas.read_parquet(path, engine="pyarrow")``, dtypes and index included, except where that is
    wrong; ``docs/differences.md`` lists the cases. A list, glob or directory of one file is that file. Many files have
    the dtypes that one file with all their rows would have.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, binary file object, or list of str or os.PathLike
        File name or URL (with ``fsspec``), the file's bytes, or an object with ``read`` and ``seek``. A directory, a
        glob or a list of names is a dataset, whose rows come in the order of the file names (``docs/datasets.md``).
    columns : list of str, optional
        Columns to read, in this order; default: all. Index columns are read as well. A dotted name that matches no
        column is a path into a nested column, as is a tuple of names; only the leaf columns below it are read. A
        field of structs becomes a column; for lists and maps (``"l.list.element.x"``) the other fields are left out.
    filters : expression, str, or list of tuples, optional
        Predicate: an expression on `numparq.col` or of `pyarrow.compute`, text such as ``"fare > 10 and zone = 'A'"``,
        or tuples ``(column, operator, value)`` as in pandas. All tuples of a list must hold; of a list of lists, one
        list must. Nulls satisfy no comparison (``docs/filtering.md``). Pages that cannot contain matching rows are not
        read. Filter columns need not be in `columns`.
    runtime_filters : list of RuntimeFilter, optional
        Filters that drop rows as soon as they are known, which may be during the read.
    explode : str or tuple of str, optional
        Path of a list or map whose elements become rows, one each (``docs/exploding.md``). Other columns are
        repeated; a null or empty list gives no row. Structs inside become one column a field, maps a key and a
        value column.
    dtype_backend : {"numpy_nullable", "pyarrow"}, optional
        As in pandas; default: NumPy dtypes, and ``str`` for strings.
    storage_options : dict, optional
        Options for the file system of a URL.
    filesystem : fsspec or pyarrow file system, optional
        File system that contains `path`.
    coalescing : Coalescing, optional
        Which byte ranges are fetched together: the largest gap between two of them (`gap`) and the largest request
        (`max_bytes`). Default: no gap for local files, up to 1 MiB for remote files.
    row_groups : list of int, optional
        Ordinals of the row groups to read, in this order; those of many files count on from file to file.
    row_range : (int, int), optional
        First row and end (exclusive), counted over the whole file, or all. With `row_groups`, rows must be in both.
    nrows : int, optional
        Maximum number of rows: the first selected ones; with `filters`, the first that satisfy them.
    categories : collection of str, optional
        Columns to read as Categorical. Columns written as Categorical always are.
    include : list of {"file", "row_group", "row_number"}, optional
        Virtual columns to append: file name, row group ordinal, row position in the file (from 0). With `explode`
        also ``"position"``, the element's position in its list.
    dates : {"objects", "datetime64"}
        Output of DATE columns: `datetime.date` objects, as in pandas, or ``datetime64[ms]``, which is several times
        faster. With ``dtype_backend="pyarrow"`` they are always ``date32[day]``.
    geometries : {"wkb", "geopandas"}
        Output of GEOMETRY and GEOGRAPHY columns: well-known binary, or geometries in a GeoDataFrame (requires
        geopandas). `ParquetFile.geospatial` has their CRS and bounding boxes.
    variants : {"values", "bytes"}
        Output of VARIANT columns, shredded or not: Python objects (dicts, lists, numbers, strings, dates, and so on),
        or dicts of ``metadata`` and ``value``, bytes for `numparq.variant.decode`. With ``dtype_backend="pyarrow"``
        they are always an Arrow struct of these two.
    files : {"references", "bytes"}
        Output of FILE columns: dicts of the reference's fields (``uri``, ``offset``, ``size``, ...), or the bytes
        referred to: inline, in this file, or, with `external_files`, in a sibling file.
    verify_crc : bool
        Whether to verify page checksums.
    on_error : {"raise", "skip"}
        What to do about damage: raise, or skip it. ``"skip"`` drops rows that are damaged in any column, and columns
        that would leave no rows; row labels stay those of all rows, unless filtered. ``df.attrs["numparq.lost"]`` then
        lists (file, row group, column, row range, reason). A damaged footer still raises.
    threads : int, optional
        Threads that decode; default: one for each core that this process may use, at most 8.
    progress : bool, default False
        Whether to show a progress bar: in a terminal (on standard error) or a notebook; elsewhere nothing is shown.
    external_files : bool
        Whether column chunks may be read from sibling files that the file names, as ``_metadata`` files do. Only
        regular files below the file's own folder, on the same file system, are opened.
    partitioning : {"hive"}, None, list or dict
        For datasets, how directory names become columns: ``key=value``; not at all; or by position, given a list of
        names. A dict (or a list of pairs) gives the types as well.
    schema : pyarrow.Schema, sequence or dict, optional
        Columns of the table; files may lack some, or store a narrower type. Default: the columns of all files.
    resolve : {"name", "position", "field_id"}
        How columns of different files are matched.
    table_format : {"auto", "parquet"}
        ``"auto"`` reads a directory that Spark streams to by its log, and refuses tables of Delta Lake, Hudi and
        Iceberg; ``"parquet"`` reads all files as they are (``docs/table-formats.md``).
    memory_limit : int, optional
        Bytes of memory. A read that would take more, as estimated from the footers, raises LimitError before it
        starts; `ParquetFile.iter_batches` reads in parts.
    decryption
        Not supported yet: anything but the default raises UnsupportedError.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ImportError
        For a URL, if fsspec or the package for this kind of URL is not installed.
    InvalidFileError
        If the file is damaged, or not a Parquet file; the message says where.
    SchemaError
        If the file has no such column.
    UnsupportedError
        If the file or the call needs a feature that this version lacks.
    LimitError
        If the read exceeds the available memory or `memory_limit`.

    Examples
    --------
    >>> import io, pandas, numparq
    >>> buffer = io.BytesIO()
    >>> pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]}).to_parquet(buffer)
    >>> numparq.read_parquet(buffer, columns=["b"], row_range=(1, 3))
         b
    0    y
    1  NaN
    """
    if decryption is not None:
        raise UnsupportedError("read_parquet(decryption=...) is not supported by this version of numparq")
    chosen = locals() | {"dtype_backend": "numpy" if dtype_backend is None else resolve_dtype_backend(dtype_backend)}
    options = ScanOptions.from_arguments(chosen)
    opening = {"storage_options": storage_options, "filesystem": filesystem, "coalescing": coalescing}
    table = open_table(path, schema, resolve, on_error, external_files, partitioning, categories, table_format, opening)
    try:
        return table._read(columns, options)
    finally:
        table.close()


@overload
def to_parquet(
    df: FrameOrArrow,
    path: None = None,
    compression: Compression = "snappy",
    index: bool | None = None,
    partition_cols: Sequence[Hashable] | None = None,
    **options: Unpack[WriteOptions],
) -> bytes: ...
@overload
def to_parquet(
    df: FrameOrArrow,
    path: PathOrBuffer,
    compression: Compression = "snappy",
    index: bool | None = None,
    partition_cols: Sequence[Hashable] | None = None,
    **options: Unpack[WriteOptions],
) -> None: ...
@short_traceback
@explain_unknown_arguments(WRITE_ADVICE)
def to_parquet(
    df: FrameOrArrow,
    path: PathOrBuffer | None = None,
    compression: Compression = "snappy",
    index: bool | None = None,
    partition_cols: Sequence[Hashable] | None = None,
    *,
    existing_data_behavior: ExistingDataBehavior = "error",
    max_rows_per_file: int | None = None,
    max_bytes_per_file: int | None = None,
    write_metadata_file: bool = False,
    keep_replaced: float = 0,
    table_format: TableFormat = "auto",
    schema: Any = None,
    compression_level: CompressionLevel = None,
    row_group_size: int | None = None,
    row_group_bytes: int | None = None,
    row_group_alignment: int | None = None,
    data_page_size: int | None = None,
    max_rows_per_page: int = MAX_ROWS_PER_PAGE,
    data_page_version: DataPageVersion = "1.0",
    use_dictionary: ColumnFlags = True,
    dictionary_pagesize_limit: int = DICTIONARY_PAGE_SIZE,
    column_encoding: ColumnEncoding = None,
    use_byte_stream_split: ColumnFlags = False,
    write_statistics: ColumnFlags = True,
    write_page_index: bool = True,
    write_page_checksum: bool = True,
    bloom_filter_options: bool | Mapping[str, Any] | None = None,
    column_order: ColumnOrderName = "type",
    sorting_columns: SortingColumns = None,
    store_schema: bool = True,
    key_value_metadata: Mapping[str, str | bytes] | None = None,
    append: bool = False,
    checkpoint_row_groups: int | None = None,
    storage_options: StorageOptions = None,
    filesystem: Any = None,
    threads: int | None = None,
    progress: bool = False,
) -> bytes | None:
    """Write a DataFrame, or Arrow data, to a Parquet file or a dataset.

    A local file is staged next to its target and moved into place at the end, so a failure leaves an earlier file
    untouched. The files of a dataset are committed together. Options of pyarrow's ``write_table`` and
    ``write_dataset`` have the same meaning here.

    Parameters
    ----------
    df : pandas.DataFrame, or Arrow data
        Rows to write; do not change them meanwhile. Arrow data (``__arrow_c_stream__``: polars, duckdb) need pyarrow.
    path : str, os.PathLike, binary file object, or None
        File name, URL (with ``fsspec``), or object with ``write``; None returns the file's bytes.
    compression : str, dict or None
        ``"snappy"``, ``"gzip"``, ``"brotli"``, ``"zstd"``, ``"lz4"``, None; or a dict of these by column.
        ``"lz4_hadoop"`` is the format's deprecated LZ4.
    index : bool, optional
        Whether to write the index as columns (True) or not at all (False). None writes columns, except for a
        RangeIndex, which the footer's metadata restores.
    schema : pyarrow.Schema, sequence or dict, optional
        Physical and logical types of columns; default: derived from the dtypes.
    compression_level : int or dict, optional
        For gzip (0 to 9), brotli (0 to 11) and zstd (up to 22).
    row_group_size, row_group_bytes, row_group_alignment, sorting_columns, store_schema, key_value_metadata, append
        As in `ParquetWriter`.
    checkpoint_row_groups, threads, progress
        As in `ParquetWriter`.
    data_page_size : int, optional
        Bytes of values, before compression, after which a page ends. Default: 64 KiB with Snappy or without
        compression, else 1 MiB.
    max_rows_per_page : int
        Rows after which a page ends.
    data_page_version : {"1.0", "2.0"}
        Version of the data pages.
    use_dictionary : bool, list or dict
        Whether, or for which columns, to try dictionary encoding.
    dictionary_pagesize_limit : int
        Maximum bytes of a dictionary; a column chunk that needs more is written without one.
    column_encoding : str or dict, optional
        Encoding of columns: ``"PLAIN"``, ``"RLE"``, ``"RLE_DICTIONARY"``, ``"DELTA_BINARY_PACKED"``,
        ``"DELTA_LENGTH_BYTE_ARRAY"``, ``"DELTA_BYTE_ARRAY"``, ``"BYTE_STREAM_SPLIT"``, ``"ALP"`` (for floats; a
        preview that few readers support). Default: chosen by type and a sample of the values.
    use_byte_stream_split : bool or list
        Numeric columns to write as BYTE_STREAM_SPLIT.
    write_statistics : bool or list
        Columns with statistics (and a page index).
    write_page_index : bool
        Whether to write column indexes and offset indexes, by which readers skip pages.
    write_page_checksum : bool
        Whether to write page checksums (CRC).
    bloom_filter_options : dict, optional
        Bloom filters by column: True, or a dict of ``fpp`` (false positive rate, default 0.01) and ``ndv`` (expected
        distinct values, default: the number seen).
    column_order : {"type", "ieee754", "nan_free"}
        Order of floats in statistics: by type, or IEEE 754's total order. ``"nan_free"`` orders by type and omits
        the bounds of column chunks with NaNs, since Spark skips rows of NaN with both others.
    storage_options : dict, optional
        Options for the file system of a URL.
    filesystem : fsspec or pyarrow file system, optional
        File system that contains `path`.
    partition_cols : list of labels, optional
        Columns whose values divide rows into folders ``key=value`` of a dataset. `path` is then its folder, as with
        the next four options (``docs/writing.md``).
    existing_data_behavior : {"error", "overwrite_or_ignore", "delete_matching"}
        Treatment of files already in the dataset: raise, keep them (as does ``append=True``), or replace those in
        partitions that get new rows.
    max_rows_per_file : int, optional
        Maximum rows of a dataset's file.
    max_bytes_per_file : int, optional
        Approximate maximum bytes of a dataset's file.
    write_metadata_file : bool
        Whether to write a dataset's ``_metadata`` file, with the footers of all files.
    keep_replaced : float
        Seconds for which a dataset's replaced files stay readable to those who listed them before; 0 deletes them at
        once. Local directories only.
    table_format : {"auto", "parquet"}
        Whether to refuse to write into tables of other systems (Delta Lake, Hudi, Iceberg), or to write plain files
        there. Single files are checked on the local disk only.

    Returns
    -------
    bytes or None
        The file, if `path` is None.

    Raises
    ------
    SchemaError
        If a column holds a value that Parquet cannot store; the message names both.
    OSError
        If the file cannot be written; nothing of it is left then.

    Examples
    --------
    >>> import pandas, numparq
    >>> data = numparq.to_parquet(pandas.DataFrame({"a": [1, 2], "b": ["x", None]}), compression="zstd")
    >>> numparq.read_parquet(data)
       a    b
    0  1    x
    1  2  NaN
    """
    options = {name: value for name, value in locals().items() if name not in ("df", "path", "index")}
    dataset_options = {name: options.pop(name) for name in _DATASET_OPTIONS}
    limits = (partition_cols, max_rows_per_file, max_bytes_per_file)
    if write_metadata_file or any(limit is not None for limit in limits):
        from .dataset.write.dataset_writer import write_dataset

        write_dataset(df, path, index, **dataset_options, **options)
        return None
    if existing_data_behavior != "error":
        raise ValueError(
            "existing_data_behavior needs a dataset; use partition_cols=[] to write one without partitions"
        )
    from .file.writer import ParquetWriter  # lazy: reads do not import the writer

    check_plain_file(path, table_format, storage_options, filesystem)

    with ParquetWriter(path, **options) as writer:
        writer.write(df, index)
    return writer.getvalue() if path is None else None
