"""Arguments of pyarrow and pandas that numparq names otherwise, as translations and as advice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from numparq.errors import UnsupportedError


class Translation(NamedTuple):
    """An argument of pyarrow's: the function from its name and value to arguments of numparq's, and advice in words."""

    translate: Callable[[str, Any], dict[str, Any]]
    advice: str


_IGNORE = Translation(lambda name, value: {}, "omit it, since it has no effect here")
_THREADS = Translation(lambda name, value: {} if value else {"threads": 1}, "use threads=1 for a single thread")
_KEEP_IF_SET = Translation(lambda name, value: {} if value is None else {name: value}, "")


def _rename(other: str) -> Translation:
    return Translation(lambda name, value: {other: value}, f"use {other}")


def _accept_only(*harmless: Any, instead: str) -> Translation:
    """Ignore values that mean what numparq does anyway; refuse others."""

    def meaning(name: str, value: Any) -> dict[str, Any]:
        if any(value is known or (type(value) is type(known) and value == known) for known in harmless):
            return {}
        raise UnsupportedError(f'engine="numparq" does not support {name}={value!r}: {instead}')

    return Translation(meaning, instead)


_READ_TABLE: dict[str, Translation] = {
    "use_threads": _THREADS,
    "use_pandas_metadata": _IGNORE,
    "page_checksum_verification": _rename("verify_crc"),
    "read_dictionary": _rename("categories"),
    "memory_map": _IGNORE,
    "buffer_size": _IGNORE,
    "pre_buffer": _IGNORE,
    "thrift_string_size_limit": _IGNORE,  # lengths are checked against the footer's size
    "thrift_container_size_limit": _IGNORE,
    "arrow_extensions_enabled": _IGNORE,
    "ignore_prefixes": _accept_only(
        None, instead="files and directories are always ignored if their names begin with . or _"
    ),
    "binary_type": _accept_only(None, instead='use dtype_backend="pyarrow" and cast the columns'),
    "list_type": _accept_only(None, instead='use dtype_backend="pyarrow" and cast the columns'),
    "coerce_int96_timestamp_unit": _accept_only(
        None,
        "ns",
        instead="INT96 becomes datetime64[ns], or [us] if a value is beyond its range; convert it with .astype",
    ),
    "decryption_properties": _accept_only(None, instead="pass decryption=numparq.Decryption(...)"),
}

_TO_PANDAS: dict[str, Translation] = {
    "use_threads": _THREADS,
    "categories": _rename("categories"),
    "maps_as_pydicts": Translation(
        lambda name, value: {name: value}, 'convert the maps with dict(), or use pandas with engine="numparq"'
    ),
    "self_destruct": _IGNORE,
    "split_blocks": _IGNORE,
    "deduplicate_objects": _IGNORE,
    "memory_pool": _IGNORE,
    "safe": _IGNORE,  # casts are always lossless
    "zero_copy_only": _accept_only(False, instead="columns are always decoded into memory of their own"),
    "ignore_metadata": _accept_only(False, instead="use reset_index() to turn the index into columns"),
    "date_as_object": Translation(
        lambda name, value: {} if value else {"dates": "datetime64"}, 'use dates="datetime64" for False'
    ),
    "timestamp_as_object": _accept_only(False, instead="convert timestamps with .astype(object)"),
    "coerce_temporal_nanoseconds": _accept_only(False, instead='convert timestamps with .astype("datetime64[ns]")'),
    "integer_object_nulls": _accept_only(False, instead='use dtype_backend="numpy_nullable" for integers with nulls'),
    "strings_to_categorical": _accept_only(False, instead="name the columns in categories=[...]"),
    "types_mapper": _accept_only(None, instead="use dtype_backend, or convert columns with .astype"),
}

_WRITE_TABLE: dict[str, Translation] = {
    "use_threads": _THREADS,
    "version": _accept_only(None, "2.6", instead='types are those of version="2.6"; set others with schema={...}'),
    "data_page_size": _KEEP_IF_SET,
    "dictionary_pagesize_limit": _KEEP_IF_SET,
    "max_rows_per_page": _KEEP_IF_SET,
    "write_batch_size": _IGNORE,
    "memory_pool": _IGNORE,
    "use_deprecated_int96_timestamps": _accept_only(
        None, False, instead="use schema={...} with a numparq.format.SchemaNode of INT96"
    ),
    "coerce_timestamps": _accept_only(
        None, instead='convert the columns with .astype("datetime64[ms]") first, or use schema={...}'
    ),
    "allow_truncated_timestamps": _accept_only(
        None, False, instead='truncate timestamps with .astype("datetime64[ms]") first'
    ),
    "flavor": _accept_only(None, instead="Spark reads what numparq writes by default"),
    "use_compliant_nested_type": _accept_only(
        True, instead='list elements are always named "element", as the specification requires'
    ),
    "store_decimal_as_integer": _accept_only(
        None,
        False,
        instead="use schema={...} with a numparq.format.SchemaNode of INT32 or INT64",
    ),
    "use_content_defined_chunking": _accept_only(None, False, instead="use max_rows_per_page and data_page_size"),
    "write_time_adjusted_to_utc": _accept_only(None, False, instead="times of day are always written as local times"),
    "encryption_properties": _accept_only(None, instead="use encryption=numparq.Encryption(...)"),
    # write_dataset
    "max_rows_per_group": _rename("row_group_size"),
    "min_rows_per_group": _accept_only(None, 0, instead="use row_group_size for the rows of a row group"),
    "max_rows_per_file": Translation(lambda name, value: {name: value} if value else {}, ""),
    "max_partitions": _IGNORE,  # no such limit here
    "max_open_files": _IGNORE,
    "create_dir": _IGNORE,
    "basename_template": _accept_only(None, instead="files of a dataset always get unique names"),
    "file_visitor": _accept_only(None, instead="list the directory afterwards to find the files"),
    "file_options": _accept_only(None, instead="pass writer options as arguments"),
    "format": _accept_only(None, "parquet", instead="numparq writes Parquet only"),
    "partitioning": _accept_only(None, instead="name the columns in partition_cols"),
    "partitioning_flavor": _accept_only(None, "hive", instead="partition directories are always named key=value"),
}


# Unknown argument -> what to do instead, for error messages.
PYARROW_READ_ADVICE = {name: item.advice for name, item in (_TO_PANDAS | _READ_TABLE).items() if item.advice}
PYARROW_WRITE_ADVICE = {name: item.advice for name, item in _WRITE_TABLE.items() if item.advice}


@dataclass(frozen=True, slots=True)
class ReadArguments:
    """Arguments of `numparq.read_parquet`, and pyarrow's ``maps_as_pydicts``."""

    options: dict[str, Any]
    maps_as_pydicts: str | None

    @classmethod
    def from_pandas(cls, kwargs: Mapping[str, Any], to_pandas_kwargs: Mapping[str, Any] | None) -> ReadArguments:
        """Translate the extra arguments of `pandas.read_parquet`; raise UnsupportedError without an equivalent."""
        options = _translate(kwargs, _READ_TABLE)
        for name, value in (to_pandas_kwargs or {}).items():
            if name not in _TO_PANDAS:
                raise TypeError(f'engine="numparq" does not support to_pandas_kwargs={{{name!r}: ...}}')
            options |= _TO_PANDAS[name].translate(name, value)
        return cls(options, _check_maps(options.pop("maps_as_pydicts", None)))


def translate_write(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Translate the extra arguments of `DataFrame.to_parquet`; raise UnsupportedError without an equivalent."""
    return _translate(kwargs, _WRITE_TABLE)


def _translate(kwargs: Mapping[str, Any], table: Mapping[str, Translation]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in kwargs.items():
        options |= table[name].translate(name, value) if name in table else {name: value}
    return options


def _check_maps(value: str | None) -> str | None:
    if value not in (None, "lossy", "strict"):
        raise ValueError(f"maps_as_pydicts must be None, 'lossy' or 'strict', not {value!r}")
    return value
