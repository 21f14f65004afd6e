"""Arguments of pyarrow's functions, which those who call pandas pass on, in terms of numparq's.

Each is understood, needless, or refused with what to do instead. What is in none of the tables is handed on as it is:
arguments of numparq's functions, and those that have pyarrow's names and meanings there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import UnsupportedError

__all__ = ["Reading", "writing"]

# What a value of an argument becomes: arguments of numparq's.
Meaning = Callable[[str, Any], dict[str, Any]]


def _needless(name: str, value: Any) -> dict[str, Any]:
    """Pass over an argument that changes neither what is read nor what is written."""
    return {}


def _named(other: str) -> Meaning:
    return lambda name, value: {other: value}


def _threads(name: str, value: Any) -> dict[str, Any]:
    return {} if value else {"threads": 1}


def _only(*harmless: Any, instead: str) -> Meaning:
    """Pass over the values that mean what numparq does anyway, and refuse others."""

    def meaning(name: str, value: Any) -> dict[str, Any]:
        if any(value is known or (type(value) is type(known) and value == known) for known in harmless):
            return {}
        raise UnsupportedError(f'engine="numparq" has no {name}={value!r}: {instead}')

    return meaning


_READING: dict[str, Meaning] = {
    "use_threads": _threads,
    "use_pandas_metadata": _needless,
    "page_checksum_verification": _named("verify_crc"),
    "read_dictionary": _named("categories"),
    "memory_map": _needless,
    "buffer_size": _needless,
    "pre_buffer": _needless,
    "thrift_string_size_limit": _needless,  # lengths are held against the footer's size
    "thrift_container_size_limit": _needless,
    "arrow_extensions_enabled": _needless,
    "ignore_prefixes": _only(None, instead="files and folders whose names begin with . or _ are left out"),
    "binary_type": _only(None, instead='dtype_backend="pyarrow" and a cast give other Arrow types'),
    "list_type": _only(None, instead='dtype_backend="pyarrow" and a cast give other Arrow types'),
    "coerce_int96_timestamp_unit": _only(
        None, "ns", instead="INT96 is datetime64[ns], or [us] where a value is beyond its range; .astype converts it"
    ),
    "decryption_properties": _only(None, instead="keys are given as decryption=..."),
}

_TO_PANDAS: dict[str, Meaning] = {
    "use_threads": _threads,
    "categories": _named("categories"),
    "maps_as_pydicts": lambda name, value: {name: value},
    "self_destruct": _needless,
    "split_blocks": _needless,
    "deduplicate_objects": _needless,
    "memory_pool": _needless,
    "safe": _needless,  # nothing is cast at a loss
    "zero_copy_only": _only(False, instead="columns are decoded, not borrowed"),
    "ignore_metadata": _only(False, instead="reset_index() gives the index back as columns"),
    "date_as_object": _only(True, instead='.astype("datetime64[s]") converts dates'),
    "timestamp_as_object": _only(False, instead=".astype(object) converts timestamps"),
    "coerce_temporal_nanoseconds": _only(False, instead='.astype("datetime64[ns]") converts timestamps'),
    "integer_object_nulls": _only(False, instead='dtype_backend="numpy_nullable" has integers beside nulls'),
    "strings_to_categorical": _only(False, instead="categories=[...] names columns to be Categoricals"),
    "types_mapper": _only(None, instead="dtype_backend says what dtypes there are; .astype converts the others"),
}

_WRITING: dict[str, Meaning] = {
    "use_threads": _threads,
    "version": _only(None, "2.6", instead='types are those of version="2.6"; schema={...} fixes others'),
    "data_page_size": lambda name, value: {} if value is None else {name: value},
    "dictionary_pagesize_limit": lambda name, value: {} if value is None else {name: value},
    "max_rows_per_page": lambda name, value: {} if value is None else {name: value},
    "write_batch_size": _needless,
    "memory_pool": _needless,
    "use_deprecated_int96_timestamps": _only(
        None, False, instead="schema={...} with a numparq.leaves.Node of INT96 writes such timestamps"
    ),
    "coerce_timestamps": _only(
        None, instead='.astype("datetime64[ms]") of the columns before, or schema={...}, gives them another unit'
    ),
    "allow_truncated_timestamps": _only(None, False, instead='.astype("datetime64[ms]") before cuts timestamps off'),
    "flavor": _only(None, instead="Spark reads what numparq writes by default"),
    "use_compliant_nested_type": _only(True, instead='elements of lists are called "element", as the format has it'),
    "store_decimal_as_integer": _only(
        None, False, instead="schema={...} with a numparq.leaves.Node of INT32 or INT64 stores decimals so"
    ),
    "use_content_defined_chunking": _only(
        None, False, instead="max_rows_per_page and data_page_size say where pages end"
    ),
    "write_time_adjusted_to_utc": _only(None, False, instead="times of day are written as local ones"),
    "encryption_properties": _only(None, instead="this version of numparq does not encrypt"),
    # of datasets
    "max_rows_per_group": _named("row_group_size"),
    "min_rows_per_group": _only(None, 0, instead="row_group_size says how many rows a row group has"),
    "max_rows_per_file": lambda name, value: {name: value} if value else {},
    "max_partitions": _needless,  # there is no limit to lift
    "max_open_files": _needless,
    "create_dir": _needless,
    "basename_template": _only(None, instead="files of a dataset have names that are nobody else's"),
    "file_visitor": _only(None, instead="a listing of the folder has the files"),
    "file_options": _only(None, instead="options of columns and row groups are arguments of their own"),
    "format": _only(None, "parquet", instead="numparq writes Parquet"),
    "partitioning": _only(None, instead="partition_cols names the columns of partitions"),
    "partitioning_flavor": _only(None, "hive", instead="folders of partitions are named key=value"),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What the arguments of a read come to.

    Parameters
    ----------
    options : dict
        Arguments of `numparq.read_parquet`.
    maps : str or None
        How maps become dicts, as in pyarrow's ``maps_as_pydicts``.
    """

    options: dict[str, Any]
    maps: str | None

    @classmethod
    def of(cls, kwargs: Mapping[str, Any], to_pandas_kwargs: Mapping[str, Any] | None) -> Reading:
        """Settle what was passed to `pandas.read_parquet` besides what it knows itself.

        Raises
        ------
        UnsupportedError
            For what numparq has nothing for.
        """
        options = _translated(kwargs, _READING)
        for name, value in (to_pandas_kwargs or {}).items():
            if name not in _TO_PANDAS:
                raise TypeError(f'engine="numparq" knows no to_pandas_kwargs={{{name!r}: ...}}')
            options |= _TO_PANDAS[name](name, value)
        return cls(options, _maps(options.pop("maps_as_pydicts", None)))


def writing(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Settle what was passed to `DataFrame.to_parquet` besides what it knows itself: arguments of `to_parquet`.

    Raises
    ------
    UnsupportedError
        For what numparq has nothing for.
    """
    return _translated(kwargs, _WRITING)


def _translated(kwargs: Mapping[str, Any], table: Mapping[str, Meaning]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in kwargs.items():
        options |= table[name](name, value) if name in table else {name: value}
    return options


def _maps(value: Any) -> str | None:
    if value not in (None, "lossy", "strict"):
        raise ValueError(f"maps_as_pydicts is None, 'lossy' or 'strict', not {value!r}")
    return value
