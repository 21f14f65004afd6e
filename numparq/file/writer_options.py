"""Writer options, resolved for each leaf column: codec, encoding, page and row group size, sorting columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import NoneType
from typing import Any

from numparq.column.encodings import ENCODING_NAMES, can_encode
from numparq.column.leaf_values import LeafValues, SourceColumn
from numparq.column.write.options import (
    DICTIONARY_PAGE_SIZE,
    MAX_ROWS_PER_PAGE,
    BloomFilterOptions,
    ColumnOptions,
    default_page_size,
)
from numparq.compression.codecs import COMPRESSION_LEVELS, compressor
from numparq.errors import SchemaError
from numparq.format.column_order import COLUMN_ORDERS
from numparq.format.physical_type import BOOLEAN, PHYSICAL_NAMES
from numparq.format.schema import Leaf
from numparq.kernels import enums
from numparq.kernels.enums import RLE_DICTIONARY
from numparq.typing import ColumnEncoding, ColumnFlags, Compression, CompressionLevel, SortingColumns
from numparq.util.arguments import (
    check_flag,
    check_list,
    check_optional_positive_int,
    check_positive_int,
    did_you_mean,
    is_flag,
    unknown_argument_error,
)

_CODECS = {
    "none": enums.UNCOMPRESSED,
    "uncompressed": enums.UNCOMPRESSED,
    "snappy": enums.SNAPPY,
    "gzip": enums.GZIP,
    "brotli": enums.BROTLI,
    "zstd": enums.ZSTD,
    "lz4": enums.LZ4_RAW,
    "lz4_raw": enums.LZ4_RAW,
    "lz4_hadoop": enums.LZ4,
}
_VERSIONS: dict[str | int, int] = {"1.0": 1, "2.0": 2, 1: 1, 2: 2}

# Options with a value for all columns or a dict by column, and what they take.
_VALUES_BY_COLUMN: dict[str, tuple[Callable[[Any], bool], str]] = {
    "compression": (lambda value: isinstance(value, (str, NoneType)), "the name of a codec, None"),
    "compression_level": (lambda value: isinstance(value, (int, NoneType)) and not is_flag(value), "an int, None"),
    "column_encoding": (lambda value: isinstance(value, (str, NoneType)), "the name of an encoding, None"),
}
# Options with a flag for all columns, or those of columns by a list of names or a dict.
_FLAGS_BY_COLUMN = ("use_dictionary", "use_byte_stream_split", "write_statistics")
_OPTIONS_BY_COLUMN = (*_VALUES_BY_COLUMN, *_FLAGS_BY_COLUMN, "bloom_filter_options")
_BLOOM_OPTIONS = ("fpp", "ndv")

DEFAULT_ROW_GROUP_ROWS = 1 << 20
_SAMPLE_ROWS = 4096


def check_option_names(function: str, options: Iterable[str], others: Iterable[str], advice: Mapping[str, str]) -> None:
    """Raise TypeError for an unknown option; `others` are known arguments of the function besides `WriterOptions`."""
    for name in options:
        known = (*WriterOptions.__dataclass_fields__, *others)
        if name not in known:
            raise unknown_argument_error(function, name, known, advice)


@dataclass(frozen=True)
class WriterOptions:
    """Column options of a writer, as in `numparq.to_parquet`."""

    compression: Compression = "snappy"
    compression_level: CompressionLevel = None
    use_dictionary: ColumnFlags = True
    column_encoding: ColumnEncoding = None
    use_byte_stream_split: ColumnFlags = False
    dictionary_pagesize_limit: int = DICTIONARY_PAGE_SIZE
    data_page_size: int | None = None
    max_rows_per_page: int = MAX_ROWS_PER_PAGE
    data_page_version: str | int = "1.0"
    write_statistics: ColumnFlags = True
    write_page_index: bool = True
    write_page_checksum: bool = True
    bloom_filter_options: bool | Mapping[str, Any] | None = None
    column_order: str = "type"

    def __post_init__(self) -> None:
        for name, (is_valid, kind) in _VALUES_BY_COLUMN.items():
            for value in _values(getattr(self, name)):
                if not is_valid(value):
                    raise TypeError(f"{name} must be {kind} or a dict of these by column, not {value!r}")
        if any(name is not None and _CODECS.get(name.lower()) == enums.LZ4 for name in _values(self.compression)):
            warnings.warn(
                "lz4_hadoop writes the deprecated LZ4 codec, which some readers misread; use lz4",
                DeprecationWarning,
                stacklevel=6,
            )
        for name in _FLAGS_BY_COLUMN:
            _check_flags(name, getattr(self, name))
        for name in ("write_page_index", "write_page_checksum"):
            check_flag(getattr(self, name), name)
        check_optional_positive_int(self.data_page_size, "data_page_size")
        for name in ("max_rows_per_page", "dictionary_pagesize_limit"):
            check_positive_int(getattr(self, name), name)
        if self.column_order not in COLUMN_ORDERS:
            raise ValueError(f"column_order must be one of {', '.join(COLUMN_ORDERS)}, not {self.column_order!r}")
        if self.data_page_version not in _VERSIONS:
            raise ValueError(f"data_page_version must be '1.0' or '2.0', not {self.data_page_version!r}")
        _check_level(self.compression, self.compression_level)

    @property
    def names_columns(self) -> bool:
        """Whether an option has values by column."""
        return any(_names_columns(getattr(self, option)) for option in _OPTIONS_BY_COLUMN)

    def resolve(self, leaves: list[Leaf]) -> list[ColumnOptions]:
        """Return the options of each leaf.

        Raises SchemaError if an option names a missing column, TypeError or ValueError if its value is invalid.
        """
        named = self._check_names(leaves)
        of_type: dict[int, ColumnOptions] = {}  # for leaves that no option names
        settled = []
        for leaf in leaves:
            if named and not named.isdisjoint(_option_names(leaf)):
                settled.append(self._resolve_leaf(leaf))
                continue
            if leaf.physical not in of_type:
                of_type[leaf.physical] = self._resolve_leaf(leaf)
            settled.append(of_type[leaf.physical])
        return settled

    def _resolve_leaf(self, leaf: Leaf) -> ColumnOptions:
        codec = _codec_number(_value_for(self.compression, leaf, "snappy"))
        level = _value_for(self.compression_level, leaf, None)
        if isinstance(self.compression_level, int) and codec not in COMPRESSION_LEVELS:
            level = None  # a single level applies only to codecs with levels; `_check_level` found one
        compressor(codec, level)
        return ColumnOptions(
            codec=codec,
            level=level,
            encoding=self._encoding(leaf),
            use_dictionary=_flag_for(self.use_dictionary, leaf),
            dictionary_page_size=self.dictionary_pagesize_limit,
            data_page_size=self.data_page_size or default_page_size(codec),
            max_rows_per_page=self.max_rows_per_page,
            data_page_version=_VERSIONS[self.data_page_version],
            checksum=bool(self.write_page_checksum),
            statistics=_flag_for(self.write_statistics, leaf),
            page_index=bool(self.write_page_index) and _flag_for(self.write_statistics, leaf),
            bloom_filter=_bloom_options(_value_for(self.bloom_filter_options, leaf, None))
            if leaf.physical != BOOLEAN
            else None,
        )

    def _encoding(self, leaf: Leaf) -> int | None:
        name = _value_for(self.column_encoding, leaf, None)
        if name is None:
            wants_split = _flag_for(self.use_byte_stream_split, leaf, default=False)
            split = ENCODING_NAMES["BYTE_STREAM_SPLIT"]
            return split if wants_split and can_encode(split, leaf.physical) else None
        encoding = ENCODING_NAMES.get(str(name).upper())
        if encoding is None:
            hint = did_you_mean(name, ENCODING_NAMES)
            raise ValueError(f"column_encoding {name!r} is not one of {', '.join(ENCODING_NAMES)}{hint}")
        return (
            encoding if _is_encodable(encoding, leaf) else None
        )  # an encoding for several columns applies where it can

    def _check_names(self, leaves: list[Leaf]) -> set[str]:
        """Check the columns that options name, and values that depend on their types; return the names."""
        if not self.names_columns:
            return set()
        given = {option: getattr(self, option) for option in _OPTIONS_BY_COLUMN}
        named = [(option, name) for option, value in given.items() if _names_columns(value) for name in value]
        below: dict[str, list[Leaf]] = {}
        for leaf in leaves:
            for name in _option_names(leaf):
                below.setdefault(name, []).append(leaf)
        for option, name in named:
            if name not in below:
                raise _unknown_column_error(option, name, below)
        self._check_types(below)
        return {name for _, name in named}

    def _check_types(self, leaves: Mapping[str, list[Leaf]]) -> None:
        """Check encodings and Bloom filters that are given by column; `leaves` are those of each name."""
        if isinstance(self.column_encoding, Mapping):
            for name, encoding in self.column_encoding.items():
                _check_encoding(name, encoding, leaves[name])
        if isinstance(self.use_byte_stream_split, Collection):
            for name in _columns_of_flags(self.use_byte_stream_split):
                _check_encoding(name, "BYTE_STREAM_SPLIT", leaves[name])
        if isinstance(self.bloom_filter_options, Mapping):
            for name, options in self.bloom_filter_options.items():
                if _bloom_options(options) and all(leaf.physical == BOOLEAN for leaf in leaves[name]):
                    raise SchemaError("a BOOLEAN column cannot have a Bloom filter", column=name)


def _unknown_column_error(option: str, name: str, known: Iterable[str]) -> SchemaError:
    """Build the error for a missing column, with similar names."""
    return SchemaError(f"{option} names the column {name!r}, which does not exist{did_you_mean(name, known)}")


def _names_columns(option: object) -> bool:
    """Whether an option has values by column."""
    return not isinstance(option, (bool, str, bytes, NoneType)) and isinstance(option, Collection)


def _values(option: Any) -> Iterable[Any]:
    """Return the values of an option that is one value for all columns, or a dict by column."""
    return option.values() if isinstance(option, Mapping) else (option,)


def _check_flags(name: str, option: object) -> None:
    """Check an option that is a flag, or flags of columns as a list of names or a dict."""
    if is_flag(option):
        return
    if isinstance(option, Mapping):
        for column, flag in option.items():
            check_flag(flag, f"{name}[{column!r}]")
    elif not isinstance(option, Collection) or isinstance(option, (str, bytes)):
        hint = f"; use [{option!r}] for one column" if isinstance(option, str) else ""
        raise TypeError(f"{name} must be True, False, or a list or dict of columns, not {option!r}{hint}")


def _columns_of_flags(option: Collection[str]) -> list[str]:
    """Return the columns whose flag is set, of an option that is a list of names or a dict."""
    return [name for name in option if not isinstance(option, Mapping) or option[name]]


def _check_level(compression: Compression, level: CompressionLevel) -> None:
    """Check that a single level for all columns applies to at least one of the codecs."""
    if level is None or isinstance(level, Mapping):
        return
    names = list(compression.values()) if isinstance(compression, Mapping) else [compression]
    if not any(_codec_number(name) in COMPRESSION_LEVELS for name in names):
        raise ValueError(
            f"compression_level={level} needs compression='gzip', 'brotli' or 'zstd', "
            f"not {' or '.join(map(repr, dict.fromkeys(names)))}, which has no levels"
        )


def _is_encodable(encoding: int, leaf: Leaf) -> bool:
    return encoding == RLE_DICTIONARY or can_encode(encoding, leaf.physical)


def _check_encoding(name: str, option: str | None, leaves: list[Leaf]) -> None:
    """Check that an encoding suits at least one of the leaves that a name covers."""
    encoding = ENCODING_NAMES.get(str(option).upper())
    if encoding is None or any(_is_encodable(encoding, leaf) for leaf in leaves):
        return
    types = " and ".join(dict.fromkeys(PHYSICAL_NAMES[leaf.physical] for leaf in leaves))
    raise ValueError(f"column {name!r} of physical type {types} cannot be written in encoding {option}")


def _option_names(leaf: Leaf) -> tuple[str, ...]:
    """Return the names by which options address a leaf: its path, then its groups, then its column."""
    return tuple(".".join(leaf.path[:depth]) for depth in range(len(leaf.path), 0, -1))


def _value_for(option: Any, leaf: Leaf, default: Any) -> Any:
    """Return a leaf's value of an option that is one value for all columns, or a dict by column."""
    if not isinstance(option, Mapping):
        return option
    return next((option[name] for name in _option_names(leaf) if name in option), default)


def _flag_for(option: ColumnFlags, leaf: Leaf, default: bool = True) -> bool:
    """Return a leaf's flag of an option that is a bool, a dict of bools (with `default`), or a list of names."""
    if isinstance(option, Mapping):
        return bool(_value_for(option, leaf, default))
    if isinstance(option, Collection) and not isinstance(option, str):
        return any(name in option for name in _option_names(leaf))
    return bool(option)


def _codec_number(name: str | None) -> int:
    """Return the CompressionCodec of a name."""
    codec = _CODECS.get("none" if name is None else name.lower())
    if codec is None:
        base, _, level = str(name).partition(":")
        hint = did_you_mean(name, _CODECS)
        if base.lower() in _CODECS and level.isdecimal():
            hint = f"; use compression={base!r}, compression_level={level}"
        raise ValueError(f"compression {name!r} is not one of {', '.join(_CODECS)}, or None{hint}")
    return codec


def _bloom_options(option: object) -> BloomFilterOptions | None:
    if option is None or option is False:
        return None
    if option is True:
        return BloomFilterOptions()
    if not isinstance(option, Mapping) or not set(option) <= set(_BLOOM_OPTIONS):
        raise TypeError(f"bloom_filter_options of a column must be True or a dict of 'fpp' and 'ndv', not {option!r}")
    options = BloomFilterOptions(**{name: value for name, value in option.items() if value is not None})
    if not isinstance(options.fpp, Real) or is_flag(options.fpp):
        raise TypeError(f"fpp, the false positive rate, must be a number between 0 and 1, not {options.fpp!r}")
    if not 0 < options.fpp < 1:
        raise ValueError(f"fpp, the false positive rate, must be between 0 and 1, not {options.fpp}")
    check_optional_positive_int(options.ndv, "ndv, the number of distinct values,")
    return options


def sorting_column_structs(option: SortingColumns, leaves: list[Leaf]) -> list[dict[str, Any]] | None:
    """Return SortingColumn structs; None without any.

    A column is a name, ``(name, descending)``, ``(name, descending, nulls_first)``, or an object like pyarrow's.
    """
    if not option:
        return None
    items = check_list(option, "sorting_columns", "columns")
    places: dict[str, int] = {}
    for leaf in reversed(leaves):
        places.update(dict.fromkeys(_option_names(leaf)[:1], leaf.index))
    return [_sorting_column(item, places) for item in items]


def _sorting_column(item: Any, places: dict[str, int]) -> dict[str, Any]:
    if hasattr(item, "column_index"):
        return {"column_idx": item.column_index, "descending": item.descending, "nulls_first": item.nulls_first}
    name, descending, nulls_first = _parse_sort_key(item)
    if name not in places:
        raise _unknown_column_error("sorting_columns", name, places)
    return {"column_idx": places[name], "descending": descending, "nulls_first": nulls_first}


def _parse_sort_key(item: object) -> tuple[str, bool, bool]:
    """Return name, descending and nulls first of a name, or a tuple of up to these three; words are pyarrow's."""
    parts = (item,) if isinstance(item, str) else item
    if not isinstance(parts, (tuple, list)) or not 1 <= len(parts) <= 3 or not isinstance(parts[0], str):
        raise TypeError(f"sorting_columns must hold names or tuples (name, descending, nulls_first), not {item!r}")
    name, descending, nulls_first = (*parts, False, False)[:3]
    return name, _sort_flag(descending, "descending"), _sort_flag(nulls_first, "nulls_first")


def _sort_flag(value: object, name: str) -> bool:
    words = _SORT_WORDS[name]
    return (
        words[value] if isinstance(value, str) and value in words else check_flag(value, f"{name} of sorting_columns")
    )


# Words of pyarrow and Spark for the flags of a sort key.
_SORT_WORDS = {
    "descending": {"ascending": False, "asc": False, "descending": True, "desc": True},
    "nulls_first": {"at_start": True, "at_end": False},
}


class RowGroupSize:
    """Limits of a row group, in rows and in bytes before encoding."""

    def __init__(self, rows: int | None, size: int | None) -> None:
        self.max_rows = check_optional_positive_int(rows, "row_group_size") or DEFAULT_ROW_GROUP_ROWS
        self._bytes = check_optional_positive_int(size, "row_group_bytes")

    def num_rows(self, columns: Sequence[SourceColumn], num_rows: int) -> int:
        """Return the rows of a row group, by the size of rows sampled across the frame."""
        if self._bytes is None or not num_rows:
            return self.max_rows
        sample = min(num_rows, _SAMPLE_ROWS)
        starts = sorted({0, (num_rows - sample) // 2, num_rows - sample})
        size = sum(
            _plain_bytes(leaf)
            for start in starts
            for column in columns
            for leaf in column.read_leaves(start, start + sample)
        )
        return max(min(self.max_rows, int(self._bytes * sample * len(starts) / max(size, 1))), 1)


def _plain_bytes(values: LeafValues) -> int:
    """Estimate the bytes of values before encoding."""
    if values.codes is not None:
        return values.codes.nbytes
    if values.starts is not None and values.ends is not None:
        return int((values.ends - values.starts).sum()) + 4 * len(values.starts)
    return values.values.nbytes
