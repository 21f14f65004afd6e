"""Public functions `read_parquet` and `to_parquet`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .column.write.options import DATA_PAGE_SIZE, DICTIONARY_PAGE_SIZE, MAX_ROWS_PER_PAGE
from .errors import InvalidFileError, UnsupportedError
from .file.reader import ParquetFile
from .types.choose import DTYPE_BACKENDS

if TYPE_CHECKING:
    import pandas as pd

    from .dataset.dataset import Dataset
    from .io.coalesce import Coalescing

_NOT_GIVEN = object()


def read_parquet(
    path: Any,
    columns: Sequence[str | tuple[str, ...]] | None = None,
    filters: Any = None,
    *,
    runtime_filters: Any = (),
    explode: str | tuple[str, ...] | None = None,
    dtype_backend: Any = _NOT_GIVEN,
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
    coalescing: Coalescing | None = None,
    row_groups: Sequence[int] | None = None,
    row_range: tuple[int | None, int | None] | None = None,
    nrows: int | None = None,
    partitioning: Any = "hive",
    schema: Any = None,
    resolve: str = "name",
    categories: Collection[str] | None = None,
    include: Sequence[str] = (),
    geometries: str = "wkb",
    variants: str = "values",
    files: str = "references",
    decryption: Any = None,
    verify_crc: bool = True,
    on_error: str = "raise",
    memory_limit: int | None = None,
    threads: int | None = None,
    external_files: bool = False,
) -> pd.DataFrame:
    """Read a Parquet file, or many as one table, into a DataFrame.

    The result equals ``pandas.read_parquet(path, engine="pyarrow")``, dtypes and index included, except where that is
    wrong; ``docs/differences.md`` lists the cases.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, binary file object, or list of str or os.PathLike
        File name or URL (with ``fsspec``), the file's bytes, or an object with ``read`` and ``seek``. A directory, a
        glob or a list of names is a dataset, whose rows come in the order of the file names (``docs/datasets.md``).
    columns : list of str, optional
        Columns to read, in this order; default: all. Index columns are read as well. A dotted name that matches no
        column is a path into a nested column, as is a tuple of names; only the leaf columns below it are read. A
        field of structs becomes a column; for lists and maps (``"l.list.element.x"``) the other fields are left out.
    filters : expression, or list of tuples, optional
        Predicate: an expression on `numparq.col`, or tuples ``(column, operator, value)`` as in pandas. All tuples of
        a list must hold; of a list of lists, one list must. Nulls satisfy no comparison (``docs/filtering.md``).
        Pages that cannot contain matching rows are not read. Filter columns need not be in `columns`.
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
        Ordinals of the row groups to read, in this order.
    row_range : (int, int), optional
        First row and end (exclusive), counted over the whole file. With `row_groups`, rows must be in both.
    nrows : int, optional
        Maximum number of rows: the first selected ones; with `filters`, the first that satisfy them.
    categories : collection of str, optional
        Columns to read as Categorical. Columns written as Categorical always are.
    include : list of {"file", "row_group", "row_number"}, optional
        Virtual columns to append: file name, row group ordinal, row position in the file (from 0). With `explode`
        also ``"position"``, the element's position in its list.
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
        that would leave no rows; row labels stay those of the whole file. ``df.attrs["numparq.lost"]`` then lists
        (file, row group, column, row range, reason). A damaged footer still raises.
    threads : int, optional
        Threads that decode; default: one for each core that this process may use.
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
        raise UnsupportedError(f"read_parquet(decryption={decryption!r}) is not supported by this version of numparq")
    chosen: dict[str, Any] = {
        "runtime_filters": runtime_filters,
        "dtype_backend": _resolve_dtype_backend(dtype_backend),
        "row_range": row_range,
        "nrows": nrows,
        "categories": categories,
        "include": include,
        "geometries": geometries,
        "variants": variants,
        "files": files,
        "verify_crc": verify_crc,
        "memory_limit": memory_limit,
        "threads": threads,
    }
    opening = {"storage_options": storage_options, "filesystem": filesystem, "coalescing": coalescing}
    table = _open_table(path, schema, resolve, on_error, external_files, partitioning, categories, opening)
    with table:
        if isinstance(table, ParquetFile):
            return table.read(columns, filters, explode=explode, row_groups=row_groups, on_error=on_error, **chosen)
        _reject_single_file_options(
            explode=explode, row_groups=row_groups, on_error=on_error, external_files=external_files
        )
        return table.read(columns, filters, **chosen)


def to_parquet(
    df: pd.DataFrame,
    path: Any = None,
    compression: Any = "snappy",
    index: bool | None = None,
    partition_cols: Any = None,
    *,
    existing_data_behavior: str = "error",
    max_rows_per_file: int | None = None,
    max_bytes_per_file: int | None = None,
    write_metadata_file: bool = False,
    schema: Any = None,
    compression_level: Any = None,
    row_group_size: int | None = None,
    row_group_bytes: int | None = None,
    row_group_alignment: int | None = None,
    data_page_size: int = DATA_PAGE_SIZE,
    max_rows_per_page: int = MAX_ROWS_PER_PAGE,
    data_page_version: Any = "1.0",
    use_dictionary: Any = True,
    dictionary_pagesize_limit: int = DICTIONARY_PAGE_SIZE,
    column_encoding: Any = None,
    use_byte_stream_split: Any = False,
    write_statistics: Any = True,
    write_page_index: bool = True,
    write_page_checksum: bool = True,
    bloom_filter_options: Any = None,
    column_order: str = "type",
    sorting_columns: Sequence[Any] | None = None,
    store_schema: bool = True,
    key_value_metadata: Mapping[str, str | bytes] | None = None,
    append: bool = False,
    checkpoint_row_groups: int | None = None,
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> bytes | None:
    """Write a DataFrame to a Parquet file or a dataset.

    A local file is staged next to its target and moved into place at the end, so a failure leaves an earlier file
    untouched. The files of a dataset are committed together. Options of pyarrow's ``write_table`` and
    ``write_dataset`` have the same meaning here.

    Parameters
    ----------
    df : pandas.DataFrame
        Frame to write; do not change it meanwhile.
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
    data_page_size : int
        Bytes of values, before compression, after which a page ends.
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
    options: dict[str, Any] = {
        "schema": schema,
        "compression": compression,
        "compression_level": compression_level,
        "row_group_size": row_group_size,
        "row_group_bytes": row_group_bytes,
        "row_group_alignment": row_group_alignment,
        "data_page_size": data_page_size,
        "max_rows_per_page": max_rows_per_page,
        "data_page_version": data_page_version,
        "use_dictionary": use_dictionary,
        "dictionary_pagesize_limit": dictionary_pagesize_limit,
        "column_encoding": column_encoding,
        "use_byte_stream_split": use_byte_stream_split,
        "write_statistics": write_statistics,
        "write_page_index": write_page_index,
        "write_page_checksum": write_page_checksum,
        "bloom_filter_options": bloom_filter_options,
        "column_order": column_order,
        "sorting_columns": sorting_columns,
        "store_schema": store_schema,
        "key_value_metadata": key_value_metadata,
        "append": append,
        "checkpoint_row_groups": checkpoint_row_groups,
        "storage_options": storage_options,
        "filesystem": filesystem,
        "threads": threads,
        "progress": progress,
    }
    many_files = (partition_cols, max_rows_per_file, max_bytes_per_file, write_metadata_file or None)
    if any(value is not None for value in many_files):
        from .dataset.write.dataset_writer import write_dataset

        write_dataset(
            df,
            path,
            index,
            partition_cols=partition_cols,
            existing_data_behavior=existing_data_behavior,
            max_rows_per_file=max_rows_per_file,
            max_bytes_per_file=max_bytes_per_file,
            write_metadata_file=write_metadata_file,
            **options,
        )
        return None
    if existing_data_behavior != "error":
        raise ValueError(
            "existing_data_behavior needs a dataset; use partition_cols=[] to write one without partitions"
        )
    from .file.writer import ParquetWriter  # lazy: reads do not import the writer

    with ParquetWriter(path, **options) as writer:
        writer.write(df, index)
    return writer.getvalue() if path is None else None


def _open_table(
    path: Any,
    schema: Any,
    resolve: str,
    on_error: str,
    external_files: bool,
    partitioning: Any,
    categories: Any,
    opening: dict[str, Any],
) -> ParquetFile | Dataset:
    """Open a path: one file, or a dataset."""
    is_plain = schema is None and resolve == "name"
    if is_plain and _is_one_file(path, opening["filesystem"]):
        return _open_file(path, on_error, external_files=external_files, **opening)
    from .dataset.dataset import Dataset

    if not isinstance(path, (str, os.PathLike, list, tuple)):
        raise TypeError(f"schema and resolve need a path or a list of paths, not {type(path).__name__}")
    dataset = Dataset(path, partitioning=partitioning, schema=schema, resolve=resolve, categories=categories, **opening)
    source = dataset.single_source() if is_plain else None
    if source is None:
        return dataset
    return _open_file(source, on_error, external_files=external_files, coalescing=opening["coalescing"])


def _is_one_file(path: Any, filesystem: Any) -> bool:
    """Whether a path is known to be one file without a request: not a name, or a local file."""
    if isinstance(path, (list, tuple)):
        return False
    if not isinstance(path, (str, os.PathLike)):
        return True
    name = os.fsdecode(path)
    return filesystem is None and "://" not in name and os.path.isfile(name)


# Options of a single file that datasets lack: default, and advice for the error message.
_SINGLE_FILE_OPTIONS: dict[str, tuple[Any, str]] = {
    "explode": (None, "read the files one by one"),
    "row_groups": (None, "use row_range, which counts over all files"),
    "on_error": ("raise", "read the files one by one"),
    "external_files": (False, "leave it out, since all files of a dataset are opened anyway"),
}


def _reject_single_file_options(**arguments: Any) -> None:
    for name, value in arguments.items():
        default, advice = _SINGLE_FILE_OPTIONS[name]
        if value != default:
            raise UnsupportedError(f"{name}={value!r} needs a single file, but the path is a dataset; {advice}")


def _open_file(path: Any, on_error: str, **options: Any) -> ParquetFile:
    """Open a file; with ``on_error="skip"``, a damaged footer's error points to `numparq salvage`."""
    try:
        return ParquetFile(path, **options)
    except InvalidFileError as error:
        if on_error == "skip":
            error.message += "; a file needs its footer: `numparq salvage` may rebuild it"
        raise


def _resolve_dtype_backend(dtype_backend: Any) -> str:
    """Return the checked `dtype_backend`; pandas' "no default" marker means "numpy"."""
    if dtype_backend is _NOT_GIVEN or dtype_backend is None or "no_default" in str(dtype_backend):
        return "numpy"
    if dtype_backend not in DTYPE_BACKENDS:
        raise ValueError(f"dtype_backend must be 'numpy_nullable' or 'pyarrow', not {dtype_backend!r}")
    return dtype_backend
