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

    What comes back equals ``pandas.read_parquet(path, engine="pyarrow")``, dtypes and index included, but for what
    that gets wrong; ``docs/differences.md`` has the list.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, binary file object, or list of str or os.PathLike
        The file's name or URL (with ``fsspec``), its bytes, or an object with ``read`` and ``seek``. A directory, a
        glob, or a list of names stands for many files, whose rows come in the order of their names
        (``docs/datasets.md``).
    columns : list of str, optional
        Names of the columns to read, in the order wanted; by default all. The columns of the index are read along. A
        name with dots that is none of a column is a path into a nested one, as is a tuple of names; only the leaves
        below are read. A field of structs becomes a column; of lists and maps (``"l.list.element.x"``), what is
        beside it is left out.
    filters : expression, or list of tuples, optional
        Which rows: an expression on `numparq.col`, or tuples ``(column, operator, value)`` as pandas has them: a list
        of which all have to hold, or a list of such lists, of which one has to. Nulls satisfy no comparison;
        ``docs/filtering.md`` has it all. What cannot hold wanted rows is not read. The columns asked need not be among
        `columns`.
    runtime_filters : list of RuntimeFilter, optional
        Filters that leave out rows from the moment on that they are known, which may be while the read runs.
    explode : str or tuple of str, optional
        The path of a list or map whose elements are to be the rows, one each; ``docs/exploding.md`` has it all.
        Columns around it are repeated; a row whose list is null or empty gives none. Structs that it leads to become
        columns by field, maps by key and value.
    dtype_backend : {"numpy_nullable", "pyarrow"}, optional
        As in pandas; by default columns of NumPy dtypes, and ``str`` for strings.
    storage_options : dict, optional
        For a URL's file system.
    filesystem : fsspec or pyarrow file system, optional
        Where `path` is.
    coalescing : Coalescing, optional
        Which byte ranges are fetched together: the most bytes between two of them (`gap`), and the most of a request
        (`max_bytes`). By default, no byte that nobody wants of a local file; of a remote one, up to 1 MiB in a gap.
    row_groups : list of int, optional
        Ordinals of the row groups to read, in the order wanted.
    row_range : (int, int), optional
        First row, and the one behind the last, counted over the whole file. Together with `row_groups`: the rows
        that both select.
    nrows : int, optional
        At most so many rows, the first of those selected; with `filters`, of those that satisfy them.
    categories : collection of str, optional
        Columns to read as Categorical. Those that were Categorical when they were written are so anyway.
    include : list of {"file", "row_group", "row_number"}, optional
        Virtual columns to add behind the others: the file's name, the ordinal of the row group, the row's
        position in the file (from 0); with `explode` also ``"position"``, that of an element in its list.
    geometries : {"wkb", "geopandas"}
        What becomes of GEOMETRY and GEOGRAPHY columns: bytes of well-known binary, or, in a GeoDataFrame, geometries
        (for which geopandas has to be installed). `ParquetFile.geospatial` tells their CRS and bounding boxes.
    variants : {"values", "bytes"}
        What becomes of VARIANT columns, shredded or not: Python objects (dicts, lists, numbers, strings, dates, and so
        on), or dicts of ``metadata`` and ``value``, bytes that `numparq.variant.decode` takes. With
        ``dtype_backend="pyarrow"`` these two are an Arrow struct in any case.
    files : {"references", "bytes"}
        What becomes of FILE columns: dicts of the fields of references (``uri``, ``offset``, ``size``, ...), or the
        bytes that these stand for: inline, of this file, or, with `external_files`, of one beside it.
    verify_crc : bool
        Whether pages that have a checksum are held against it.
    on_error : {"raise", "skip"}
        What to do with what cannot be read: raise, or leave it out. With ``"skip"``, rows that are damaged in any
        column are left out, and columns with which no row would be left; labels stay those of a whole file.
        ``df.attrs["numparq.lost"]`` then lists (file, row group, column, row range, reason). A damaged footer still
        raises.
    threads : int, optional
        Threads that decode; by default one for each core that this process may use.
    external_files : bool
        Whether a file that names others, as those called ``_metadata`` do, may have column chunks read from them: from
        regular files below its own folder, on the same file system, and from nothing else.
    partitioning : {"hive"}, None, list or dict
        Of many files: how columns are told from the names of directories: ``key=value``; not at all; or, with a list of
        names, by position. A dict (or a list of pairs) gives their types.
    schema : pyarrow.Schema, sequence or dict, optional
        The columns of the table; files may lack some, or have them in a narrower type. By default all columns of all
        files.
    resolve : {"name", "position", "field_id"}
        How columns of different files are known to be the same one.
    memory_limit : int, optional
        Bytes of memory. What would take more, as far as the footers tell, raises LimitError before it is read;
        `ParquetFile.iter_batches` reads it part by part.
    decryption
        Not supported yet: anything but the default raises UnsupportedError.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ImportError
        For a URL, when fsspec, or what it needs for this kind of URL, is not installed.
    InvalidFileError
        When the file is damaged, or no Parquet file; the message says where.
    SchemaError
        When the file has no such column.
    UnsupportedError
        For what this version does not read.
    LimitError
        When memory does not suffice, or would be more than `memory_limit`.

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
    """Write a DataFrame to a Parquet file, or a folder of many.

    A local file is written beside its place, and put there whole at the end: whatever happens before leaves an
    earlier file as it was. So are the files of a dataset, all at once. Options that pyarrow's ``write_table`` and
    ``write_dataset`` have mean the same here.

    Parameters
    ----------
    df : pandas.DataFrame
        The frame; it must not change meanwhile.
    path : str, os.PathLike, binary file object, or None
        A file's name, a URL (with ``fsspec``), an object with ``write``; None gives the bytes back.
    compression : str, dict or None
        ``"snappy"``, ``"gzip"``, ``"brotli"``, ``"zstd"``, ``"lz4"``, None; or a dict of those by column.
        ``"lz4_hadoop"`` is the format's deprecated LZ4.
    index : bool, optional
        Whether to write the index: as columns (True), not at all (False), or as columns unless it is a RangeIndex,
        which a note in the footer restores (None).
    schema : pyarrow.Schema, sequence or dict, optional
        The physical and logical types of columns; by default they follow from the dtypes.
    compression_level : int or dict, optional
        Of gzip (0 to 9), brotli (0 to 11) and zstd (up to 22).
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
        Whether, or for which columns, a dictionary is tried.
    dictionary_pagesize_limit : int
        Bytes that a dictionary may have; a column chunk that would need more has none.
    column_encoding : str or dict, optional
        The encoding of columns: ``"PLAIN"``, ``"RLE"``, ``"RLE_DICTIONARY"``, ``"DELTA_BINARY_PACKED"``,
        ``"DELTA_LENGTH_BYTE_ARRAY"``, ``"DELTA_BYTE_ARRAY"``, ``"BYTE_STREAM_SPLIT"``, ``"ALP"`` (of floats; a
        preview, which few readers know); by default chosen by type and a look at the values.
    use_byte_stream_split : bool or list
        Which numeric columns are written as BYTE_STREAM_SPLIT.
    write_statistics : bool or list
        Which columns have statistics (and a page index).
    write_page_index : bool
        Whether there are column indexes and offset indexes, by which readers skip pages.
    write_page_checksum : bool
        Whether pages have a CRC.
    bloom_filter_options : dict, optional
        Bloom filters by column: True, or a dict of ``fpp`` (the share of false positives, 0.01) and ``ndv`` (distinct
        values to make room for; by default as many as are seen).
    column_order : {"type", "ieee754", "nan_free"}
        How the statistics of floats compare: as their type does, or by IEEE 754's total order; or as their type does,
        and column chunks with NaNs have no bounds, since Spark skips rows of NaN by both others.
    storage_options : dict, optional
        For a URL's file system.
    filesystem : fsspec or pyarrow file system, optional
        Where `path` is.
    partition_cols : list of labels, optional
        Columns by whose values rows are divided into folders ``key=value`` of a dataset; `path` is its folder then. So
        it is with any of the following four; ``docs/writing.md`` has it all.
    existing_data_behavior : {"error", "overwrite_or_ignore", "delete_matching"}
        What becomes of a dataset's files that are there: they are an error, they stay (so, too, with ``append=True``),
        or those in partitions that there are rows for are replaced.
    max_rows_per_file : int, optional
        Rows that a file of a dataset has at the most.
    max_bytes_per_file : int, optional
        Bytes that it has at the most, about.
    write_metadata_file : bool
        Whether a dataset gets a file ``_metadata`` with the footers of all its files.

    Returns
    -------
    bytes or None
        The file, when `path` is None.

    Raises
    ------
    SchemaError
        When a column holds what Parquet cannot; the message says which column and value.
    OSError
        When the file cannot be written; nothing is left of it then.

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
        raise ValueError("existing_data_behavior is for datasets; partition_cols=[] makes one without partitions")
    from .file.writer import ParquetWriter  # reading does not wait for it

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
    """Open what a path stands for: one file, or many as a table."""
    is_plain = schema is None and resolve == "name"
    if is_plain and _is_one_file(path, opening["filesystem"]):
        return _open_file(path, on_error, external_files=external_files, **opening)
    from .dataset.dataset import Dataset

    if not isinstance(path, (str, os.PathLike, list, tuple)):
        raise TypeError("schema and resolve go with files that have names: a path, or a list of these")
    dataset = Dataset(path, partitioning=partitioning, schema=schema, resolve=resolve, categories=categories, **opening)
    source = dataset.single_source() if is_plain else None
    if source is None:
        return dataset
    return _open_file(source, on_error, external_files=external_files, coalescing=opening["coalescing"])


def _is_one_file(path: Any, filesystem: Any) -> bool:
    """Whether a path is known, without a request, to be one file: what has no name, and what is here and is one."""
    if isinstance(path, (list, tuple)):
        return False
    if not isinstance(path, (str, os.PathLike)):
        return True
    name = os.fsdecode(path)
    return filesystem is None and "://" not in name and os.path.isfile(name)


# What is said of arguments that one file has, and many do not: the default, and what to do.
_SINGLE_FILE_OPTIONS: dict[str, tuple[Any, str]] = {
    "explode": (None, "read the files one by one"),
    "row_groups": (None, "row groups are those of one file; row_range counts over all of them"),
    "on_error": ("raise", "read the files one by one"),
    "external_files": (False, "the files of a dataset are opened by themselves"),
}


def _reject_single_file_options(**arguments: Any) -> None:
    for name, value in arguments.items():
        default, advice = _SINGLE_FILE_OPTIONS[name]
        if value != default:
            raise UnsupportedError(f"{name}={value!r} goes with one file, and the path stands for many: {advice}")


def _open_file(path: Any, on_error: str, **options: Any) -> ParquetFile:
    """Open a file; where a footer that is damaged leaves nothing to skip, tell of what there is left to try."""
    try:
        return ParquetFile(path, **options)
    except InvalidFileError as error:
        if on_error == "skip":
            error.message += "; without its footer a file is lost, unless `numparq salvage` can make a new one"
        raise


def _resolve_dtype_backend(dtype_backend: Any) -> str:
    """Settle the ``dtype_backend`` argument; pandas' own mark for "not given" counts as that."""
    if dtype_backend is _NOT_GIVEN or dtype_backend is None or "no_default" in str(dtype_backend):
        return "numpy"
    if dtype_backend not in DTYPE_BACKENDS:
        raise ValueError(f"dtype_backend must be 'numpy_nullable' or 'pyarrow', not {dtype_backend!r}")
    return dtype_backend
