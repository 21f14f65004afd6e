"""Arrow values as 64-bit words: equal values have equal words, whatever their Arrow type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import xxhash

from numparq.errors import UnsupportedError
from numparq.kernels.kernel_groups import statistics_kernels
from numparq.util.optional import import_pyarrow

# Words and the null mask (None: no nulls); a word at a null is arbitrary.
Words: TypeAlias = tuple[np.ndarray, "np.ndarray | None"]

_NULL_WORD = np.uint64(0x7FB5D329728EA185)  # a null within a nested value
_PAIR_SEED = np.uint64(0x9E3779B97F4A7C15)  # distinguishes the second of two words from the first
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_NAN = np.array([np.nan]).view(np.uint64)[0]
_MILLISECONDS_A_DAY = 86_400_000


def hash_words(words: np.ndarray) -> np.ndarray:
    """Return the XXH64 hash of each uint64 word."""
    out = np.empty(len(words), np.uint64)
    statistics_kernels.xxh64_fixed(np.ascontiguousarray(words).view(np.uint8), 8, len(words), out)
    return out


def to_words(array: Any) -> Words:
    """Return the values of an Arrow array as uint64 words, and a bool mask of nulls (None: no nulls).

    Equal values of types with the same `value_kind_name` have equal words; a word at a null is arbitrary.
    """
    convert = _CONVERSIONS[_family(array.type)]
    return convert(array), _nulls(array)


def value_kind_name(arrow_type: Any) -> str:
    """Return the name of the value kind of an Arrow type, shared by types whose values compare equal.

    Integers of all widths share one, as do times of all units. Raise UnsupportedError for types that Parquet lacks.
    """
    family = _family(arrow_type)
    if family == "dictionary":
        return value_kind_name(arrow_type.value_type)
    if family == "extension":
        return value_kind_name(arrow_type.storage_type)
    if family == "decimal":
        return f"decimal of scale {arrow_type.scale}"
    return _SHARED_KINDS.get(family, family)


def _nulls(array: Any) -> np.ndarray | None:
    mask: np.ndarray | None = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if _family(array.type) != "dictionary" or not array.dictionary.null_count:
        return mask
    entries: np.ndarray = array.dictionary.is_null().to_numpy(zero_copy_only=False)[_codes(array)]
    return entries if mask is None else entries | mask


# --- flat values ------------------------------------------------------------------------------------------------------


def _fixed(array: Any, dtype: Any) -> np.ndarray:
    """Return the values of a fixed-size type as a view of the data buffer; arbitrary at nulls."""
    data, dtype = array.buffers()[1], np.dtype(dtype)
    if data is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)


def _booleans(array: Any) -> np.ndarray:
    values: np.ndarray = array.fill_null(False).cast(import_pyarrow().uint8()).to_numpy()
    return values.astype(np.uint64)


def _integers(array: Any) -> np.ndarray:
    dtype = np.dtype(array.type.to_pandas_dtype())
    wide = np.uint64 if dtype.kind == "u" else np.int64
    return _fixed(array, dtype).astype(wide).view(np.uint64)


def _floats(array: Any) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = _fixed(array, array.type.to_pandas_dtype()).astype(np.float64)
    words = values.view(np.uint64)
    words[np.isnan(values)] = _NAN
    return words


def _dates(array: Any) -> np.ndarray:
    if array.type.bit_width == 32:
        return _fixed(array, np.int32).astype(np.int64).view(np.uint64)
    return (_fixed(array, np.int64) // _MILLISECONDS_A_DAY).view(np.uint64)


def _times(array: Any) -> np.ndarray:
    """Hash times of any unit as seconds and nanoseconds."""
    per_second = _PER_SECOND[array.type.unit]
    values = _fixed(array, f"i{array.type.bit_width // 8}").astype(np.int64)
    seconds, parts = np.divmod(values, per_second)
    return _hash_pairs(seconds.view(np.uint64), (parts * (10**9 // per_second)).view(np.uint64))


def _hash_pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    hashes: np.ndarray = hash_words(first) + hash_words(second ^ _PAIR_SEED)
    return hashes


def _decimals(array: Any) -> np.ndarray:
    """Hash unscaled values: two words, and two more of 256-bit decimals that do not fit in 128 bits."""
    bits = array.type.bit_width
    if bits < 128:
        array = array.cast(import_pyarrow().decimal128(array.type.precision, array.type.scale))
        bits = 128
    width = bits // 64
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), np.uint64)
    words = np.frombuffer(data, np.uint64, len(array) * width, array.offset * width * 8).reshape(-1, width)
    short = _hash_pairs(words[:, 0], words[:, 1])
    if width == 2:
        return short
    sign = (words[:, 1].view(np.int64) >> 63).view(np.uint64)
    fits = (words[:, 2] == sign) & (words[:, 3] == sign)
    return np.where(fits, short, hash_words(short) + _hash_pairs(words[:, 2], words[:, 3]))


def _binary(array: Any) -> np.ndarray:
    """Hash strings and bytes."""
    _, offsets, data = array.buffers()
    dtype = np.int64 if _family(array.type) in ("large_string", "large_binary") else np.int32
    if offsets is None or not len(array):
        return np.zeros(len(array), np.uint64)
    bounds = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * np.dtype(dtype).itemsize).astype(np.int64)
    raw = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    out = np.empty(len(array), np.uint64)
    statistics_kernels.xxh64_binary(raw, bounds[:-1].copy(), bounds[1:].copy(), len(array), out)
    return out


def _large(array: Any) -> np.ndarray:
    pa = import_pyarrow()
    return _binary(array.cast(pa.large_string() if array.type == pa.string_view() else pa.large_binary()))


def _fixed_binary(array: Any) -> np.ndarray:
    width, data = array.type.byte_width, array.buffers()[1]
    starts = np.arange(array.offset, array.offset + len(array), dtype=np.int64) * width
    raw = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    out = np.zeros(len(array), np.uint64)
    if data is not None or not width:
        statistics_kernels.xxh64_binary(raw, starts, starts + width, len(array), out)
    return out


def _dictionary(array: Any) -> np.ndarray:
    if not len(array.dictionary):
        return np.zeros(len(array), np.uint64)
    words: np.ndarray = to_words(array.dictionary)[0][_codes(array)]
    return words


def _codes(array: Any) -> np.ndarray:
    codes: np.ndarray = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return codes


def _nothing(array: Any) -> np.ndarray:
    return np.zeros(len(array), np.uint64)


# --- nested values ----------------------------------------------------------------------------------------------------


def _hash_nested(array: Any, seed: int) -> np.ndarray:
    """Hash the values of a field or element; a null is a value like any other."""
    words, is_null = to_words(array)
    hashes = hash_words(words ^ np.uint64(seed))
    if is_null is not None:
        hashes[is_null] = _NULL_WORD ^ np.uint64(seed)
    return hashes


def _field_seed(name: str, arrow_type: Any) -> int:
    return xxhash.xxh64_intdigest(f"{value_kind_name(arrow_type)}\0{name}".encode("utf-8", "surrogatepass"))


def _structs(array: Any) -> np.ndarray:
    total = np.zeros(len(array), np.uint64)
    for place in range(array.type.num_fields):
        field = array.type.field(place)
        total += _hash_nested(array.field(place), _field_seed(field.name, field.type))
    return hash_words(total)


def _lists(array: Any) -> np.ndarray:
    """Hash lists of variable length: elements and their positions."""
    dtype = np.int64 if _family(array.type) == "large_list" else np.int32
    raw = array.buffers()[1]
    if raw is None or not len(array):
        return np.zeros(len(array), np.uint64)
    bounds = np.frombuffer(raw, dtype, len(array) + 1, array.offset * np.dtype(dtype).itemsize).astype(np.int64)
    elements = array.values.slice(bounds[0], bounds[-1] - bounds[0])
    return _sum_by_list(_hash_nested(elements, _field_seed("element", elements.type)), bounds - bounds[0])


def _fixed_lists(array: Any) -> np.ndarray:
    size = array.type.list_size
    elements = array.values.slice(array.offset * size, len(array) * size)
    return _sum_by_list(
        _hash_nested(elements, _field_seed("element", elements.type)), np.arange(len(array) + 1, dtype=np.int64) * size
    )


def _maps(array: Any) -> np.ndarray:
    """Hash maps as lists of key-value pairs: the order counts, as files keep it."""
    raw = array.buffers()[1]
    if raw is None or not len(array):
        return np.zeros(len(array), np.uint64)
    bounds = np.frombuffer(raw, np.int32, len(array) + 1, array.offset * 4).astype(np.int64)
    start, count = bounds[0], bounds[-1] - bounds[0]
    pairs = _hash_pairs(
        *(
            _hash_nested(part.slice(start, count), _field_seed(name, part.type))
            for name, part in (("key", array.keys), ("value", array.items))
        )
    )
    return _sum_by_list(pairs, bounds - start)


def _sum_by_list(hashes: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Hash each list as the sum of its element hashes with their positions; `bounds` are list offsets."""
    lengths = np.diff(bounds)
    places = np.arange(len(hashes), dtype=np.int64) - np.repeat(bounds[:-1], lengths)
    placed = _hash_pairs(hashes, places.view(np.uint64))
    sums = np.zeros(len(hashes) + 1, np.uint64)
    np.cumsum(hash_words(placed), out=sums[1:])
    return hash_words(sums[bounds[1:]] - sums[bounds[:-1]] + lengths.view(np.uint64))


def _storage(array: Any) -> np.ndarray:
    return to_words(array.storage)[0]


_CONVERSIONS: dict[str, Callable[[Any], np.ndarray]] = {
    "null": _nothing,
    "bool": _booleans,
    "integer": _integers,
    "float": _floats,
    "date": _dates,
    "timestamp": _times,
    "time": _times,
    "duration": _times,
    "decimal": _decimals,
    "string": _binary,
    "large_string": _binary,
    "binary": _binary,
    "large_binary": _binary,
    "view": _large,
    "fixed_size_binary": _fixed_binary,
    "dictionary": _dictionary,
    "struct": _structs,
    "list": _lists,
    "large_list": _lists,
    "fixed_size_list": _fixed_lists,
    "map": _maps,
    "extension": _storage,
}
_SHARED_KINDS = {
    **dict.fromkeys(("string", "large_string", "binary", "large_binary", "view", "fixed_size_binary"), "bytes"),
    **dict.fromkeys(("list", "large_list", "fixed_size_list"), "list"),
}
# Family -> predicate of pyarrow.types, tried in order.
_FAMILY_TESTS = (
    ("null", "is_null"),
    ("bool", "is_boolean"),
    ("integer", "is_integer"),
    ("float", "is_floating"),
    ("date", "is_date"),
    ("timestamp", "is_timestamp"),
    ("time", "is_time"),
    ("duration", "is_duration"),
    ("decimal", "is_decimal"),
    ("string", "is_string"),
    ("large_string", "is_large_string"),
    ("binary", "is_binary"),
    ("large_binary", "is_large_binary"),
    ("view", "is_string_view"),
    ("view", "is_binary_view"),
    ("fixed_size_binary", "is_fixed_size_binary"),
    ("dictionary", "is_dictionary"),
    ("struct", "is_struct"),
    ("list", "is_list"),
    ("large_list", "is_large_list"),
    ("fixed_size_list", "is_fixed_size_list"),
    ("map", "is_map"),
)
_FAMILIES: dict[Any, str] = {}


def _family(arrow_type: Any) -> str:
    found = _FAMILIES.get(arrow_type)
    if found is None:
        found = _FAMILIES[arrow_type] = _find_family(arrow_type)
    return found


def _find_family(arrow_type: Any) -> str:
    pa = import_pyarrow()
    if isinstance(arrow_type, pa.BaseExtensionType):
        return "extension"
    for family, test in _FAMILY_TESTS:
        if getattr(pa.types, test)(arrow_type):
            return family
    raise UnsupportedError(f"values of Arrow type {arrow_type} have no checksum")
