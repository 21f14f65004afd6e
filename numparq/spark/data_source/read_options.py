"""Read options of the data source: the table, parsing, and errors that name the wrong option."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from numparq.column.projection import VIRTUAL_COLUMNS
from numparq.dataset.discover.expected_parts import ExpectedParts
from numparq.dataset.discover.files import EmptyDatasetError
from numparq.dataset.partitions.types import parse_partition_type
from numparq.errors import InvalidFileError, ParquetError, SchemaError
from numparq.spark.filters.dialect import SparkDialect, parse_time_zone
from numparq.spark.scan.calendar import build_calendar, parse_rebase_mode
from numparq.spark.scan.file_filter import build_file_filter, parse_time
from numparq.spark.scan.request import ReadRequest
from numparq.util.arguments import did_you_mean

from .option_values import (
    UnquotedValueError,
    choice_parser,
    parse_bool,
    parse_bytes,
    parse_count,
    parse_duration,
    parse_json_object,
    parse_provider_name,
)

_STORAGE = "storage."
Planned = TypeVar("Planned")


class ReadOption(NamedTuple):
    """Read option of the data source, and the field of `ReadRequest` that it sets.

    `name` is case-insensitive to Spark; `parse` raises a ValueError whose text says what the value should be. An empty
    `field` sets nothing.
    """

    name: str
    field: str
    parse: Callable[[str], Any]
    meaning: str


class StreamLimits(NamedTuple):
    """Limits of a stream's batches: files or bytes; maximum age of a file, in microseconds before the newest one."""

    max_files: int | None = None
    max_bytes: int | None = None
    max_age: int = 7 * 86400 * 10**6


def _names(text: str) -> list[Any]:
    """Parse ``a, b`` or ``["a", ["s", "x"]]``."""
    if not text.strip():
        return []
    if not text.lstrip().startswith("["):
        names = [part.strip() for part in text.split(",")]
        if not all(names):
            raise ValueError("a list of names, separated by commas or as JSON")
        return list(names)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("a list of names, separated by commas or as JSON") from error
    if not all(isinstance(name, str) or _is_path(name) for name in found):
        raise ValueError("a list of names, or of lists of names for fields of structs")
    return [tuple(name) if isinstance(name, list) else name for name in found]


def _is_path(name: Any) -> bool:
    return isinstance(name, list) and bool(name) and all(isinstance(part, str) for part in name)


def _partitioning(text: str) -> Any:
    """Parse ``hive``, ``none``, ``year, month`` or ``{"year": "int32"}``."""
    if text.strip().lower() in ("hive", "none"):
        return "hive" if text.strip().lower() == "hive" else None
    if text.lstrip().startswith("{"):
        return {name: _type_name(name, kind) for name, kind in parse_json_object(text).items()}
    names = _names(text)
    if not names or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise ValueError("hive, none, a list of distinct level names, or a JSON object of types")
    return names


def _type_name(name: str, kind: Any) -> str:
    try:
        if not isinstance(kind, str):
            raise TypeError
        parse_partition_type(kind)
    except (TypeError, ValueError):
        example = '{"year": "int32", "day": "date", "zone": "str"}'
        raise ValueError(f"a JSON object of types, such as {example} (the type of {name!r} is unknown)") from None
    return kind


def _virtual(text: str) -> list[str]:
    """Parse names of virtual columns."""
    names = _names(text)
    if not set(names) <= set(VIRTUAL_COLUMNS):
        raise ValueError(f"any of {', '.join(VIRTUAL_COLUMNS)}")
    return names


def _parts(text: str) -> Any:
    """Parse names of parts, or fingerprints by name."""
    try:
        parts = json.loads(text)
        ExpectedParts(parts)
    except (ValueError, TypeError, RecursionError):
        raise ValueError("a JSON list of names of parts, or an object of fingerprints by name") from None
    return parts


def _fixed(name: str, value: str, reason: str) -> ReadOption:
    """Return an option of Spark's own source, of which numparq has one value."""
    return ReadOption(name, "", _only(value, reason), f"{value}, since {reason}")


def _only(value: str, reason: str) -> Callable[[str], str]:
    """Return a parser of one value."""

    def parse(text: str) -> str:
        if text.strip().lower() != value.lower():
            raise ValueError(f"{value}, since {reason}")
        return value

    return parse


_CALENDAR = "files that do not say their calendar: CORRECTED, LEGACY or EXCEPTION"


def _no_partitions(text: str) -> None:
    """Parse ``recursiveFileLookup``; files of sub-folders are read in any case."""
    _only("true", "folders below the path are always read")(text)


READ_OPTIONS = (
    ReadOption("columns", "columns", _names, "columns to read: a, b or a JSON list, with lists for fields of structs"),
    ReadOption("filter", "filters", str, "rows to read, exactly: n > 3 and zone in ('A', 'B')"),
    ReadOption("splitBytes", "split_bytes", parse_bytes, "approximate maximum of stored bytes per task: 64m"),
    ReadOption(
        "minSplits", "min_splits", parse_count, "minimum number of tasks, if rows can be divided: the driver's cores"
    ),
    ReadOption(
        "planFiles", "plan_files", parse_count, "number of files above which tasks read the footers, not the driver"
    ),
    ReadOption("rowsPerBatch", "rows_per_batch", parse_count, "maximum rows per batch passed to Spark"),
    ReadOption("partitioning", "partitioning", _partitioning, 'hive, none, names, or a JSON object {"year": "int32"}'),
    ReadOption(
        "partitionColumnTypeInference", "infers_partitions", parse_bool, "infer the types of partition columns: true"
    ),
    ReadOption("caseSensitive", "case_sensitive", parse_bool, "match the names of a schema exactly: false"),
    ReadOption(
        "resolve",
        "resolve",
        choice_parser("name", "position", "field_id"),
        "match columns of files by name, position or field_id",
    ),
    ReadOption(
        "tableFormat",
        "table_format",
        choice_parser("auto", "parquet"),
        "tables of other systems: auto refuses them, parquet reads all their files",
    ),
    ReadOption("basePath", "base_path", str, "directory below which directory names are partitions"),
    ReadOption("pathGlobFilter", "path_glob_filter", str, "glob pattern of file names: *.parquet"),
    ReadOption("modifiedAfter", "modified_after", parse_time, "files modified after a time: 2024-01-31T12:00:00Z"),
    ReadOption("modifiedBefore", "modified_before", parse_time, "files modified before a time"),
    ReadOption("timeZone", "time_zone", parse_time_zone, "time zone of times without one: Europe/Paris"),
    ReadOption("recursiveFileLookup", "partitioning", _no_partitions, "true for no partition columns"),
    ReadOption("include", "include", _virtual, "virtual columns: file, row_group, row_number"),
    ReadOption("verifyCrc", "verify_crc", parse_bool, "verify page checksums: true"),
    ReadOption(
        "nanoseconds",
        "nanoseconds",
        choice_parser("exact", "floor"),
        "timestamps finer than microseconds: exact raises an error, floor truncates",
    ),
    ReadOption(
        "decryption",
        "decryption",
        parse_provider_name,
        "name of what provides the keys of encrypted files: package.module:attribute",
    ),
    ReadOption(
        "expectedParts",
        "expected_parts",
        _parts,
        "parts that the dataset must have, and no others: a JSON list of names, or an object of fingerprints by name",
    ),
    ReadOption("pushdown", "pushdown", parse_bool, "apply filters of queries; needs register(spark, pushdown=True)"),
    _fixed("mergeSchema", "true", "the schemas of all files are always merged"),
    _fixed("ignoreCorruptFiles", "false", "damage is an error; numparq salvage recovers rows"),
    _fixed("ignoreMissingFiles", "false", "files of a DataFrame that are gone are an error"),
    _fixed("ignoreInvalidPartitionPaths", "false", "pathGlobFilter and basePath choose the files"),
    ReadOption("datetimeRebaseMode", "dates", parse_rebase_mode, f"days and moments of {_CALENDAR}"),
    ReadOption("int96RebaseMode", "int96", parse_rebase_mode, f"INT96 of {_CALENDAR}"),
    ReadOption("storageOptions", "storage_options", parse_json_object, "options of the file system, as a JSON object"),
)
_ANY_ORDER = "files are read in the order of their modification"
_LEFT_ALONE = "a stream leaves the files of its source as they are"
STREAM_OPTIONS = (
    ReadOption("maxFilesPerTrigger", "max_files", parse_count, "maximum number of files of a batch: 1000"),
    ReadOption("maxBytesPerTrigger", "max_bytes", parse_bytes, "bytes of the files of a batch, or one file"),
    ReadOption("maxFileAge", "max_age", parse_duration, "files older than the newest one by this are not read: 7d"),
    _fixed("latestFirst", "false", _ANY_ORDER),
    _fixed("fileNameOnly", "false", "files are known by their paths in the source"),
    _fixed("cleanSource", "off", _LEFT_ALONE),
    ReadOption("sourceArchiveDir", "", _only("", _LEFT_ALONE), f"not set, since {_LEFT_ALONE}"),
    ReadOption("maxCachedFiles", "", str, "no effect: each trigger lists the source"),
    ReadOption("discardCachedInputRatio", "", str, "no effect: each trigger lists the source"),
)
_BY_NAME = {option.name.lower(): option for option in READ_OPTIONS}
_OF_STREAMS = {option.name.lower(): option for option in STREAM_OPTIONS}
# Fields that `build_file_filter` takes.
_FILE_FILTER = ("base_path", "path_glob_filter", "modified_after", "modified_before", "time_zone")
# Options that Spark sets itself.
_SET_BY_SPARK = {"path", "paths", "__partition_columns"}
# Options that Spark adds for CREATE TABLE.
_SET_BY_CREATE_TABLE = {"owner"}
_NO_TABLES = (
    "Spark stores neither path nor options of a table of a Python data source; use a TEMPORARY VIEW, or declare the "
    "columns, CREATE TABLE t (id bigint) USING numparq, and pass the path in each query, SELECT * FROM t WITH "
    "(path = '...')"
)


def parse_read_options(options: Mapping[str, str]) -> ReadRequest:
    """Parse the options of a load, with ``path`` or ``paths`` (a JSON list).

    Raises ValueError for an unknown option (listing those that exist), an invalid value, or a missing path.
    """
    given = {name.lower(): value for name, value in options.items()}
    if given.keys() & _SET_BY_CREATE_TABLE:
        raise ValueError(f"CREATE TABLE cannot infer the columns: {_NO_TABLES}")
    found: dict[str, Any] = {}
    storage: dict[str, Any] = {}
    for name, text in given.items():
        if name in _SET_BY_SPARK:
            continue
        if name.startswith(_STORAGE):
            storage[name.removeprefix(_STORAGE)] = {"true": True, "false": False}.get(text.lower(), text)
            continue
        option = _BY_NAME.get(name)
        if option is None and name in _OF_STREAMS:
            raise ValueError(f"the option {_OF_STREAMS[name].name!r} needs spark.readStream, with a schema")
        if option is None:
            hint = did_you_mean(name, [known.name for known in READ_OPTIONS])
            raise ValueError(f"numparq has no option {name!r} for reading{hint or ';'} {_list_options()}")
        if option.field and option.field in found:
            names = [known.name for known in READ_OPTIONS if known.field == option.field]
            raise ValueError(f"the options {' and '.join(map(repr, names))} exclude each other; use one of them")
        found[option.field] = _parse(option, text)
    if storage:
        found["storage_options"] = found.get("storage_options", {}) | storage
    found.pop("", None)
    found.setdefault("min_splits", os.cpu_count() or 1)
    found["dialect"] = SparkDialect(found.get("time_zone"), found.pop("case_sensitive", False))
    modes = {name: found.pop(name) for name in ("dates", "int96") if name in found}
    found["calendar"] = build_calendar(**modes, zone=given.get("timezone"))
    chosen = {name: found.pop(name) for name in _FILE_FILTER if name in found}
    found["file_filter"] = build_file_filter(**chosen)
    return ReadRequest(path=_paths(given), **found)


def parse_stream_options(options: Mapping[str, str]) -> tuple[ReadRequest, StreamLimits]:
    """Parse the options of a stream: those of a load, and a few more; raises what `parse_read_options` does."""
    own = {name: text for name, text in options.items() if name.lower() in _OF_STREAMS}
    request = parse_read_options({name: text for name, text in options.items() if name not in own})
    if request.pushdown:
        raise ValueError("the option 'pushdown' is for spark.read; use 'filter' in a stream")
    found = {_OF_STREAMS[name.lower()].field: _parse(_OF_STREAMS[name.lower()], text) for name, text in own.items()}
    found.pop("", None)
    if "max_files" in found and "max_bytes" in found:
        raise ValueError(
            "the options 'maxFilesPerTrigger' and 'maxBytesPerTrigger' exclude each other; use one of them"
        )
    return request, StreamLimits(**found)


def _parse(option: ReadOption, text: str) -> Any:
    try:
        return option.parse(text)
    except UnquotedValueError as error:
        raise ValueError(f"the option {option.name!r} must be {error}") from None
    except ValueError as error:
        raise ValueError(f"the option {option.name!r} must be {error}, not {text!r}") from error


def _paths(given: Mapping[str, str]) -> Any:
    """Return the path or paths; Spark combines both options."""
    paths = _listed(given["paths"]) if given.get("paths") else []
    if "path" in given:
        paths = [given["path"], *paths]
    if not paths:
        raise ValueError(f'the path is missing; pass it as .load("..."). For a table: {_NO_TABLES}')
    local = [_strip_file_scheme(path) for path in paths]
    return local[0] if len(local) == 1 else local


def _listed(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(path, str) for path in found):
        raise ValueError(f'the option \'paths\' must be a JSON list of paths, such as ["a", "b"], not {text!r}')
    return found


def _strip_file_scheme(path: str) -> str:
    """Drop the scheme ``file:`` from a local path."""
    if path.lower().startswith("file:"):
        return "/" + path[len("file:") :].lstrip("/")
    return path


# --- which option is wrong --------------------------------------------------------------------------------------------

# Options that may be well-formed but not fit the table, likeliest first.
_SUSPECTS = ("columns", "filter", "partitioning", "basepath", "resolve", "storageoptions")
_SUSPECTS_OF_NO_FILES = ("pathglobfilter", "modifiedafter", "modifiedbefore")


def plan_with_options(options: Mapping[str, str], plan: Callable[[ReadRequest], Planned]) -> Planned:
    """Plan a read by its options; an error caused by one option names it.

    To find that option, planning is repeated without each suspect.
    """
    request = parse_read_options(options)
    try:
        return plan(request)
    except (SchemaError, ValueError, TypeError) as error:
        name = next((name for name in _suspects(options, error) if _works_without(name, options, plan)), None)
        if name is None:
            raise
        said = f"the option {_option_name(name)!r}"
        if isinstance(error, ParquetError):
            raise type(error)(f"{said}: {error.message}", **error.where) from None
        raise ValueError(f"{said}: {error}") from None


def _suspects(options: Mapping[str, str], error: Exception) -> Iterator[str]:
    given = {name.lower(): name for name in options}
    asked: tuple[str, ...] = ("partitioning",) if isinstance(error, InvalidFileError) else _SUSPECTS
    asked = _SUSPECTS_OF_NO_FILES if isinstance(error, EmptyDatasetError) else asked
    yield from (given[name] for name in asked if name in given)
    yield from (name for name in options if name.lower().startswith(_STORAGE))


def _works_without(name: str, options: Mapping[str, str], plan: Callable[[ReadRequest], Any]) -> bool:
    try:
        plan(parse_read_options({other: text for other, text in options.items() if other != name}))
    except Exception:
        return False
    return True


def _option_name(name: str) -> str:
    option = _BY_NAME.get(name.lower())
    return name if option is None else option.name


def _list_options() -> str:
    lines = [f"  {option.name}: {option.meaning}" for option in READ_OPTIONS]
    return "\n".join(["the options are:", *lines, f"  {_STORAGE}<name>: an option of the file system"])
