"""Write options of the data source, under the names of Spark, parquet-java and numparq."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from numparq.util.arguments import did_you_mean

from .option_values import (
    UnquotedValueError,
    choice_parser,
    parse_bool,
    parse_bytes,
    parse_count,
    parse_fraction,
    parse_int,
    parse_json_object,
    parse_names,
    parse_provider_name,
    parse_sort_columns,
    per_column_parser,
)

_STORAGE = "storage."
_CODECS = {"uncompressed": "none", "lz4raw": "lz4_raw"}  # Spark's names
_PAGE_VERSIONS = {"v1": "1.0", "v2": "2.0", "parquet_1_0": "1.0", "parquet_2_0": "2.0"}  # parquet-java's names
_SET_BY_SPARK = {"path", "__partition_columns"}
_MARKS_SUCCESS = "mapreduce.fileoutputcommitter.marksuccessfuljobs"  # Hadoop's name


class WriteOption(NamedTuple):
    """Write option of the data source, and the argument of `SharedJob.begin` that it sets.

    Case and underscores in `names` do not count; `parse` raises a ValueError whose text says what the value should be.
    Names in `fallbacks` count, the first before the second, where none of `names` is set.
    """

    names: tuple[str, ...]
    argument: str
    parse: Callable[[str], Any]
    meaning: str
    fallbacks: tuple[str, ...] = ()

    def names_before(self, name: str) -> set[str]:
        """Return the normalized names that count before a name of this option."""
        if _normalize_name(name) not in map(_normalize_name, self.fallbacks):
            return set()
        known = [_normalize_name(each) for each in (*self.names, *self.fallbacks)]
        return set(known[: known.index(_normalize_name(name))])


def parse_codec(text: str) -> str:
    """Return a codec by its name, or by that of Spark."""
    word = text.strip().lower()
    return _CODECS.get(word, word)


def _page_version(text: str) -> str:
    """Parse ``1.0``, ``2.0``, or parquet-java's ``v1`` and ``PARQUET_2_0``."""
    word = text.strip().lower()
    return choice_parser("1.0", "2.0")(_PAGE_VERSIONS.get(word, word))


def parse_row_limit(text: str) -> int | None:
    """Parse a number of rows; 0 and less are no limit, as in Spark."""
    return None if text.strip() == "0" or (text.strip().startswith("-") and parse_int(text)) else parse_count(text)


def _seconds(text: str) -> int:
    """Parse a number of seconds, 0 too."""
    return 0 if text.strip() == "0" else parse_count(text)


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
        per_column_parser(parse_codec),
        'snappy, zstd, gzip, brotli, lz4, none; or {"a": "zstd", "b": "none"}',
        ("parquet.compression", "parquet.compression.codec"),  # Spark's order
    ),
    _O(
        ("compressionLevel", "parquet.compression.codec.zstd.level"),
        "compression_level",
        per_column_parser(parse_int),
        "level of gzip, brotli and zstd",
    ),
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
    _O(("dataPageVersion", "parquet.writer.version"), "data_page_version", _page_version, "1.0 or 2.0"),
    _O(
        ("writeStatistics", "parquet.column.statistics.enabled"),
        "write_statistics",
        _true_or_names,
        "true, false or names",
    ),
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
    _O(("maxRecordsPerFile", "maxRowsPerFile"), "max_rows_per_file", parse_row_limit, "maximum rows of a file; 0: all"),
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
    _O((_MARKS_SUCCESS,), "marks_success", parse_bool, "write the empty file _SUCCESS after the commit: true"),
    _O(("ifExists",), "if_exists", choice_parser("error", "append"), "existing files with append: error or append"),
    _O(("keepReplaced",), "keep_replaced", _seconds, "seconds for which replaced files stay readable: 0"),
    _O(
        ("tableFormat",),
        "table_format",
        choice_parser("auto", "parquet"),
        "folders of other systems' tables: auto refuses them, parquet writes plain files there",
    ),
    _O(
        ("keyValueMetadata",),
        "key_value_metadata",
        parse_json_object,
        "key-value metadata of the footers, as a JSON object of strings",
    ),
    _O(
        ("encryption",),
        "encryption",
        parse_provider_name,
        "name of what provides the keys and modes of encrypted files: package.module:attribute",
    ),
    _O(
        ("decryption",),
        "decryption",
        parse_provider_name,
        "name of what provides the keys of existing files: package.module:attribute",
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


_BY_NAME = {_normalize_name(name): option for option in WRITE_OPTIONS for name in (*option.names, *option.fallbacks)}


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
            _add_option(found, name, text, set(map(_normalize_name, options)))
    if blooms:
        known = {column.lower(): column for column in columns}
        blooms = {known.get(column.lower(), column): parts for column, parts in blooms.items()}
        found["bloom_filter_options"] = found.get("bloom_filter_options", {}) | _enabled_bloom_filters(blooms)
    return _path(options), found


def _add_option(found: dict[str, Any], name: str, text: str, given: set[str]) -> None:
    """Add an option, unless one of the given names comes before it."""
    option = _BY_NAME.get(_normalize_name(name))
    if option is None:
        raise _unknown_option(name)
    value = _parse(name, option.parse, text)
    if option.argument == "storage_options":
        value |= found.get(option.argument, {})
    elif given & option.names_before(name):
        return
    elif option.argument in found:
        raise ValueError(f"the options {' and '.join(option.names)} are synonyms; set only one of them")
    found[option.argument] = value


def _add_column_option(blooms: dict[str, dict[str, Any]], name: str, text: str) -> None:
    """Add an option of a column's Bloom filter."""
    base, _, column = name.partition("#")
    if base.lower() not in _COLUMN_OPTIONS:
        raise _unknown_option(name)
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
    except UnquotedValueError as error:
        raise ValueError(f"the option {name!r} must be {error}") from None
    except ValueError as error:
        raise ValueError(f"the option {name!r} must be {error}, not {text!r}") from error


def _scalar(text: str) -> Any:
    return {"true": True, "false": False}.get(text.lower(), text)


def _path(options: Mapping[str, str]) -> str:
    path = next((text for name, text in options.items() if name.lower() == "path"), "")
    if not path:
        raise ValueError('the path is missing; pass it as .save("...")')
    return re.sub(r"^file:/+", "/", path, flags=re.IGNORECASE)


def _unknown_option(name: str) -> ValueError:
    hint = did_you_mean(name, [known for option in WRITE_OPTIONS for known in option.names])
    return ValueError(f"numparq has no option {name!r} for writing{hint or ';'} {_list_options()}")


def _list_options() -> str:
    lines = [f"  {' or '.join((*option.names, *option.fallbacks))}: {option.meaning}" for option in WRITE_OPTIONS]
    lines += [f"  {name}#<column>" for name in _COLUMN_OPTIONS]
    return "\n".join(["the options are:", *lines, f"  {_STORAGE}<name>: an option of the file system"])
