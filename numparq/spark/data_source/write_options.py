"""Write options of the data source, under the names of Spark, parquet-java and numparq."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from .option_values import (
    choice_parser,
    parse_bool,
    parse_bytes,
    parse_count,
    parse_fraction,
    parse_int,
    parse_json_object,
    parse_names,
    parse_sort_columns,
    per_column_parser,
)

__all__ = ["WRITE_OPTIONS", "WriteOption", "parse_write_options"]

_STORAGE = "storage."
_CODECS = {"uncompressed": "none", "lz4raw": "lz4_raw"}  # Spark's names
_SET_BY_SPARK = {"path", "__partition_columns"}


class WriteOption(NamedTuple):
    """Write option of the data source, and the argument of `SharedJob.begin` that it sets.

    Case and underscores in `names` do not count; `parse` raises a ValueError whose text says what the value should be.
    """

    names: tuple[str, ...]
    argument: str
    parse: Callable[[str], Any]
    meaning: str


def _codec(text: str) -> str:
    word = text.strip().lower()
    return _CODECS.get(word, word)


def _true_or_names(text: str) -> Any:
    return parse_bool(text) if text.strip().lower() in ("true", "false") else parse_names(text)


def _bloom(text: str) -> Any:
    """Parse column names, or a JSON object of Bloom filter options."""
    if text.lstrip().startswith("{"):
        return parse_json_object(text)
    return dict.fromkeys(parse_names(text), True)


_O = WriteOption
WRITE_OPTIONS = (
    _O(
        ("compression", "codec"),
        "compression",
        per_column_parser(_codec),
        'snappy, zstd, gzip, brotli, lz4, none; or {"a": "zstd", "b": "none"}',
    ),
    _O(("compressionLevel",), "compression_level", per_column_parser(parse_int), "level of gzip, brotli and zstd"),
    _O(
        ("columnEncoding", "encodings"), "column_encoding", per_column_parser(str.strip), '{"a": "DELTA_BINARY_PACKED"}'
    ),
    _O(("useDictionary", "parquet.enable.dictionary"), "use_dictionary", _true_or_names, "true, false or names"),
    _O(("useByteStreamSplit",), "use_byte_stream_split", _true_or_names, "true, false or names"),
    _O(
        ("dictionaryPageSizeLimit", "parquet.dictionary.page.size"),
        "dictionary_pagesize_limit",
        parse_bytes,
        "maximum bytes of a dictionary page",
    ),
    _O(("dataPageSize", "parquet.page.size"), "data_page_size", parse_bytes, "bytes of a page, before compression: 1m"),
    _O(("maxRowsPerPage", "parquet.page.row.count.limit"), "max_rows_per_page", parse_count, "maximum rows of a page"),
    _O(("dataPageVersion",), "data_page_version", choice_parser("1.0", "2.0"), "1.0 or 2.0"),
    _O(("writeStatistics",), "write_statistics", _true_or_names, "true, false or names"),
    _O(("writePageIndex",), "write_page_index", parse_bool, "true or false (default: true)"),
    _O(
        ("writePageChecksum", "parquet.page.write-checksum.enabled"),
        "write_page_checksum",
        parse_bool,
        "true or false (default: true)",
    ),
    _O(("columnOrder",), "column_order", str.strip, "column order of floats: nan_free, type or ieee754"),
    _O(
        ("bloomFilters", "bloomFilterColumns", "bloomFilterOptions"),
        "bloom_filter_options",
        _bloom,
        'names, or {"a": {"ndv": 1000000, "fpp": 0.01}}',
    ),
    _O(("rowGroupSize",), "row_group_size", parse_count, "maximum rows of a row group: 1048576"),
    _O(
        ("rowGroupBytes", "parquet.block.size"),
        "row_group_bytes",
        parse_bytes,
        "approximate bytes of a row group in memory: 128m",
    ),
    _O(("rowGroupAlignment",), "row_group_alignment", parse_bytes, "row groups begin at multiples of these bytes"),
    _O(("maxRecordsPerFile", "maxRowsPerFile"), "max_rows_per_file", parse_count, "maximum rows of a file"),
    _O(("maxBytesPerFile",), "max_bytes_per_file", parse_bytes, "approximate bytes of a file"),
    _O(
        ("partitionColumns", "partitionCols", "partitionBy"),
        "partition_cols",
        parse_names,
        "columns that partition the rows into directories",
    ),
    _O(
        ("sortColumns", "sortBy"),
        "sort_by",
        parse_sort_columns,
        "sort the rows of each file: a, b desc, c nulls first",
    ),
    _O(
        ("sortingColumns",),
        "sorting_columns",
        parse_sort_columns,
        "order that the rows already have; recorded in the files",
    ),
    _O(
        ("partitionOverwriteMode",),
        "overwritten",
        choice_parser("static", "dynamic"),
        "files that overwrite replaces: all (static), or those of the partitions written (dynamic)",
    ),
    _O(("ifExists",), "if_exists", choice_parser("error", "append"), "existing files with append: error or append"),
    _O(
        ("keyValueMetadata",),
        "key_value_metadata",
        parse_json_object,
        "key-value metadata of the footers, as a JSON object of strings",
    ),
    _O(("storageOptions",), "storage_options", parse_json_object, "options of the file system, as a JSON object"),
)

# parquet-java's options of one column, and the Bloom filter option that each sets.
_COLUMN_OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "parquet.bloom.filter.enabled": ("enabled", parse_bool),
    "parquet.bloom.filter.expected.ndv": ("ndv", parse_count),
    "parquet.bloom.filter.fpp": ("fpp", parse_fraction),
}


def _normalize_name(name: str) -> str:
    return name.lower().replace("_", "")


_BY_NAME = {_normalize_name(name): option for option in WRITE_OPTIONS for name in option.names}


def parse_write_options(options: Mapping[str, str], columns: Collection[str] = ()) -> tuple[str, dict[str, Any]]:
    """Parse the options of a write; return the folder and the arguments of `SharedJob.begin`.

    Raises ValueError for unknown, invalid and duplicate options. `columns` restores the case of ``option#column``.
    """
    found: dict[str, Any] = {}
    blooms: dict[str, dict[str, Any]] = {}
    for name, text in options.items():
        if name.lower() in _SET_BY_SPARK:
            continue
        if name.lower().startswith(_STORAGE):
            found.setdefault("storage_options", {})[name[len(_STORAGE) :]] = _scalar(text)
        elif "#" in name:
            _add_column_option(blooms, name, text)
        else:
            option = _BY_NAME.get(_normalize_name(name))
            if option is None:
                raise ValueError(f"numparq has no option {name!r} for writing; {_list_options()}")
            value = _parse(name, option.parse, text)
            if option.argument == "storage_options":
                value |= found.get(option.argument, {})
            elif option.argument in found:
                raise ValueError(f"the options {' and '.join(option.names)} are synonyms; set only one of them")
            found[option.argument] = value
    if blooms:
        known = {column.lower(): column for column in columns}
        blooms = {known.get(column.lower(), column): parts for column, parts in blooms.items()}
        found["bloom_filter_options"] = found.get("bloom_filter_options", {}) | _enabled_bloom_filters(blooms)
    return _path(options), found


def _add_column_option(blooms: dict[str, dict[str, Any]], name: str, text: str) -> None:
    """Add an option of a column's Bloom filter."""
    base, _, column = name.partition("#")
    if base.lower() not in _COLUMN_OPTIONS:
        raise ValueError(f"numparq has no option {name!r} for writing; {_list_options()}")
    key, parse = _COLUMN_OPTIONS[base.lower()]
    blooms.setdefault(column, {})[key] = _parse(name, parse, text)


def _enabled_bloom_filters(blooms: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        column: {key: value for key, value in options.items() if key != "enabled"} or True
        for column, options in blooms.items()
        if options.get("enabled", False)
    }


def _parse(name: str, parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"the option {name!r} must be {error}, not {text!r}") from error


def _scalar(text: str) -> Any:
    return {"true": True, "false": False}.get(text.lower(), text)


def _path(options: Mapping[str, str]) -> str:
    path = next((text for name, text in options.items() if name.lower() == "path"), "")
    if not path:
        raise ValueError('the path is missing; pass it as .save("...")')
    return re.sub(r"^file:/+", "/", path, flags=re.IGNORECASE)


def _list_options() -> str:
    lines = [f"  {' or '.join(option.names)}: {option.meaning}" for option in WRITE_OPTIONS]
    lines += [f"  {name}#<column>" for name in _COLUMN_OPTIONS]
    return "\n".join(["the options are:", *lines, f"  {_STORAGE}<name>: an option of the file system"])
