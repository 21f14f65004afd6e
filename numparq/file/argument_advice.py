"""Advice for arguments of pandas, pyarrow, polars, duckdb, fastparquet and Spark that numparq has under other names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .pyarrow_arguments import PYARROW_READ_ADVICE, PYARROW_WRITE_ADVICE

_CAST = "convert columns of the frame with .astype(...), or use dtype_backend"
_BATCHES = "use ParquetFile.iter_batches(batch_rows=...)"
_TYPES_ARE_STORED = "omit it: the file has the types of its columns"
_NAMES_ARE_STORED = "omit it: the file has the names of its columns; rename those of the frame"
_NULLS_ARE_STORED = "omit it: the file says which values are null"
_NO_TEXT = "omit it: it is about files of text"
_NO_EFFECT = "omit it, since it has no effect here"
_BY_TYPE = "use schema={column: type}"
_NO_PATH = "use path"

_Rows = tuple[tuple[str, str], ...]  # names, joined by spaces, and their advice

_BOTH: _Rows = (
    ("engine use_pyarrow", "omit it: numparq is the engine"),
    ("to_pandas_kwargs pyarrow_options", "pass the options of numparq themselves"),
    ("n_threads num_threads nthreads n_jobs workers num_workers max_workers parallel", "use threads"),
    ("show_progress progress_bar verbose", "use progress"),
    ("fs open_with", "use filesystem"),
    ("credential_provider", "use storage_options"),
    ("sep delimiter separator quotechar quote_char quoting encoding encoding_errors decimal decimal_comma", _NO_TEXT),
    ("thousands comment comment_prefix dialect doublequote escapechar lineterminator eol_char float_format", _NO_TEXT),
)
_READ: _Rows = (
    ("source file io fn fname filepath filepath_or_buffer path_or_buf path_or_paths paths file_path", _NO_PATH),
    ("filename", 'use path; include=["file"] adds the name of each row\'s file'),
    ("usecols cols column column_names projection select", "use columns"),
    ("filter where predicate pred query condition row_filter", "use filters"),
    ("n_rows max_rows num_rows limit n maxrows row_limit", "use nrows"),
    ("skiprows skip_rows skip_lines skip_rows_after_header offset skip", "use row_range=(first, None)"),
    ("skipfooter slice rows row_slice", "use row_range=(first, end)"),
    ("chunksize chunk_size batch_size iterator", _BATCHES),
    ("dtype dtypes schema_overrides converters", _CAST),
    ("use_nullable_dtypes", 'use dtype_backend="numpy_nullable"'),
    ("backend", "use dtype_backend"),
    ("index_col index", "use .set_index(...) on the frame; an index that the file stores comes back by itself"),
    ("names header has_header new_columns with_column_names prefix", _NAMES_ARE_STORED),
    ("compression", "omit it: the file says how its pages are compressed"),
    ("parse_dates date_format date_parser dayfirst cache_dates try_parse_dates", _TYPES_ARE_STORED),
    ("infer_schema_length infer_schema infer_schema_files cast_options", _TYPES_ARE_STORED),
    ("na_values keep_default_na na_filter null_values empty_string_is_null pandas_nulls", _NULLS_ARE_STORED),
    ("skipinitialspace skip_blank_lines truncate_ragged_lines float_precision true_values false_values", _NO_TEXT),
    ("low_memory memory", "use memory_limit"),
    ("on_bad_lines error_bad_lines ignore_errors errors", 'use on_error="skip" for damaged pages'),
    ("row_index_name row_count_name file_row_number", 'use include=["row_number"]'),
    ("row_index_offset row_count_offset", 'use include=["row_number"], and add to it'),
    ("include_file_paths file_path_column", 'use include=["file"]'),
    ("hive_partitioning hive", 'use partitioning="hive", or None'),
    ("hive_schema hive_types hive_types_autocast try_parse_hive_dates", 'use partitioning={"key": type}'),
    ("union_by_name allow_missing_columns missing_columns", "omit it: a column that a file lacks is null there"),
    ("extra_columns merge_schema mergeSchema", "omit it: the schemas of all files are merged"),
    ("use_statistics glob rechunk cache retries use_legacy_dataset validate_schema schema_depth_limit", _NO_EFFECT),
    ("metadata common_metadata exclude_invalid_files raise_if_empty", _NO_EFFECT),
    ("format", "omit it: numparq reads Parquet only"),
    ("hidden_file_prefix", "files and directories are always ignored if their names begin with . or _"),
    ("partition_base_dir root", "name the folder above the partitions as path, and select with filters"),
    ("binary_as_string", "convert the columns of the frame with .str.decode()"),
    ("verify verify_checksum verify_checksums checksum", "use verify_crc"),
    ("encryption_config", "pass decryption=numparq.Decryption(...)"),
    ("squeeze", 'use .squeeze("columns") on the frame'),
    ("sort_by", "use .sort_values(...) on the frame"),
)
_WRITE: _Rows = (
    ("where file fname filename path_or_buf filepath target sink dest destination root_path base_dir", _NO_PATH),
    ("table data frame dataframe tbl", "use df"),
    ("mode", "use append=True to add to a file, or existing_data_behavior for a dataset"),
    ("if_exists overwrite overwrite_or_ignore", "use existing_data_behavior; a single file is replaced"),
    ("preserve_index write_index", "use index"),
    ("index_label", "name the index of the frame, with .rename_axis(...)"),
    ("columns cols", 'select the columns first: df[["a", "b"]]'),
    ("partition_on partition_by partitionBy partitions partition_columns", "use partition_cols"),
    ("codec compress", "use compression"),
    ("chunksize chunk_size batch_size row_group_offsets", "use row_group_size"),
    ("row_group_size_bytes block_size", "use row_group_bytes"),
    ("file_size_bytes partition_chunk_size_bytes", "use max_bytes_per_file"),
    ("row_groups_per_file maxRecordsPerFile", "use max_rows_per_file"),
    ("data_pagesize_limit page_size data_page_size_limit data_pagesize", "use data_page_size"),
    ("dictionary dict_encoding", "use use_dictionary"),
    ("stats statistics", "use write_statistics"),
    ("bloom_filter bloom_filters bloom_filter_columns", "use bloom_filter_options={column: True}"),
    ("sort_by sortBy sort", "sort the frame first, and name its order in sorting_columns"),
    ("metadata custom_metadata kv_metadata file_metadata", "use key_value_metadata"),
    ("dtype dtypes arrow_schema field_ids object_encoding times", _BY_TYPE),
    ("has_nulls na_rep", "omit it: nulls are stored as such"),
    ("date_format", "omit it: dates are stored as such"),
    ("mkdir mkdirs lazy maintain_order preserve_order writer_engine_version file_scheme fixed_text", _NO_EFFECT),
    ("header errors", _NO_TEXT),
    ("options", "pass the options themselves"),
    ("encryption_config", "use encryption=numparq.Encryption(...)"),
)
_WRITER: _Rows = (
    ("df table data frame dataframe index preserve_index", "pass it to write()"),
    ("partition_cols partition_by partition_on existing_data_behavior", "use numparq.DatasetWriter"),
    ("max_rows_per_file max_bytes_per_file write_metadata_file", "use numparq.DatasetWriter"),
    ("mode overwrite if_exists", "use append=True to add to a file; otherwise it is replaced"),
)


def _advice(*rows: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each name with its advice."""
    for names, advice in rows:
        for name in names.split():
            yield name, advice


# Unknown argument -> what to do instead, for error messages.
READ_ADVICE = PYARROW_READ_ADVICE | dict(_advice(*_BOTH, *_READ))
WRITE_ADVICE = PYARROW_WRITE_ADVICE | dict(_advice(*_BOTH, *_WRITE))
BATCHES_ADVICE = READ_ADVICE | dict(_advice(("chunksize chunk_size batch_size max_rows", "use batch_rows")))
WRITER_ADVICE = WRITE_ADVICE | dict(_advice(*_WRITER))


def opening_advice(options: Iterable[str]) -> dict[str, str]:
    """Return advice for what opens a file or dataset, given the options of its reads."""
    reads = {name: f"{text}, in read()" if text.startswith("use ") else text for name, text in READ_ADVICE.items()}
    opening = dict(_advice(*_BOTH, _READ[0], ("chunksize chunk_size batch_size iterator", _BATCHES)))
    return reads | opening | dict.fromkeys(options, "pass it to read() or iter_batches()")
