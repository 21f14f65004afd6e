"""Public function `to_parquet`."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from numparq.column.write.options import DICTIONARY_PAGE_SIZE, MAX_ROWS_PER_PAGE
from numparq.dataset.listing.table_formats import check_plain_file
from numparq.errors import short_traceback
from numparq.file.argument_advice import WRITE_ADVICE
from numparq.typing import (
    ColumnEncoding,
    ColumnFlags,
    ColumnOrderName,
    Compression,
    CompressionLevel,
    DataPageVersion,
    EncryptionKeys,
    ExistingDataBehavior,
    FileArguments,
    FrameOrArrow,
    PathLike,
    PathOrBuffer,
    SortingColumns,
    StorageOptions,
    TableFormat,
    WriteOptions,
)
from numparq.util.arguments import explain_unknown_arguments

if TYPE_CHECKING:
    from numparq.dataset.write.store_refresh import RefreshableStore


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
    skipping: RefreshableStore | PathLike | None = None,
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
    encryption: EncryptionKeys | str | None = None,
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
    encryption : Encryption or str, optional
        Keys and modes of an encrypted file (``docs/encryption.md``), or the name ``"package.module:attribute"`` of what
        provides them. Needs cryptography 50 or newer.
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
    skipping : numparq.skipping.Store, or its folder, optional
        Data-skipping store of the dataset, which is refreshed after the commit; if that fails, it warns.
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
    options: FileArguments = {
        "compression": compression,
        "compression_level": compression_level,
        "use_dictionary": use_dictionary,
        "column_encoding": column_encoding,
        "use_byte_stream_split": use_byte_stream_split,
        "dictionary_pagesize_limit": dictionary_pagesize_limit,
        "data_page_size": data_page_size,
        "max_rows_per_page": max_rows_per_page,
        "data_page_version": data_page_version,
        "write_statistics": write_statistics,
        "write_page_index": write_page_index,
        "write_page_checksum": write_page_checksum,
        "bloom_filter_options": bloom_filter_options,
        "column_order": column_order,
        "row_group_size": row_group_size,
        "row_group_bytes": row_group_bytes,
        "row_group_alignment": row_group_alignment,
        "sorting_columns": sorting_columns,
        "key_value_metadata": key_value_metadata,
        "store_schema": store_schema,
        "checkpoint_row_groups": checkpoint_row_groups,
        "append": append,
        "encryption": encryption,
        "schema": schema,
        "threads": threads,
        "progress": progress,
        "storage_options": storage_options,
        "filesystem": filesystem,
    }
    limits = (partition_cols, max_rows_per_file, max_bytes_per_file)
    if write_metadata_file or any(limit is not None for limit in limits):
        from numparq.dataset.write.dataset_writer import write_dataset

        write_dataset(
            df,
            path,
            index,
            partition_cols=partition_cols,
            existing_data_behavior=existing_data_behavior,
            max_rows_per_file=max_rows_per_file,
            max_bytes_per_file=max_bytes_per_file,
            write_metadata_file=write_metadata_file,
            keep_replaced=keep_replaced,
            skipping=_open_store(skipping),
            table_format=table_format,
            **options,
        )
        return None
    if existing_data_behavior != "error" or skipping is not None:
        name = "skipping" if skipping is not None else "existing_data_behavior"
        raise ValueError(f"{name} needs a dataset; use partition_cols=[] to write one without partitions")
    from numparq.file.writer import ParquetWriter  # lazy: reads do not import the writer

    check_plain_file(path, table_format, storage_options, filesystem)
    with ParquetWriter(path, **options) as writer:
        writer.write(df, index)
    return writer.getvalue() if path is None else None


def _open_store(skipping: RefreshableStore | PathLike | None) -> RefreshableStore | None:
    if not isinstance(skipping, (str, os.PathLike)):
        return skipping
    from numparq.skipping.store import Store

    return Store(skipping)
