"""Writer options, resolved for each leaf column: codec, encoding, page and row group size, sorting columns."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numparq.column.encodings import ENCODING_NAMES, can_encode
from numparq.column.leaf_values import LeafValues, SourceColumn
from numparq.column.write.options import (
    DATA_PAGE_SIZE,
    DICTIONARY_PAGE_SIZE,
    MAX_ROWS_PER_PAGE,
    BloomFilterOptions,
    ColumnOptions,
)
from numparq.compression.codecs import COMPRESSION_LEVELS, compressor
from numparq.errors import SchemaError
from numparq.format.column_order import COLUMN_ORDERS
from numparq.format.physical_type import BOOLEAN, PHYSICAL_NAMES
from numparq.format.schema import Leaf
from numparq.kernels import enums
from numparq.kernels.enums import RLE_DICTIONARY
from numparq.typing import ColumnEncoding, ColumnFlags, Compression, CompressionLevel, SortingColumns
from numparq.util.arguments import check_optional_positive_int, check_positive_int

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

_OPTIONS_BY_COLUMN = (
    "compression",
    "compression_level",
    "use_dictionary",
    "column_encoding",
    "use_byte_stream_split",
    "write_statistics",
    "bloom_filter_options",
)
_BLOOM_OPTIONS: dict[str, Callable[[Any], Any]] = {"fpp": float, "ndv": int}

DEFAULT_ROW_GROUP_ROWS = 1 << 20
_SAMPLE_ROWS = 4096


@dataclass(frozen=True)
class WriterOptions:
    """Column options of a writer, as in `numparq.to_parquet`."""

    compression: Compression = "snappy"
    compression_level: CompressionLevel = None
    use_dictionary: ColumnFlags = True
    column_encoding: ColumnEncoding = None
    use_byte_stream_split: ColumnFlags = False
    dictionary_pagesize_limit: int = DICTIONARY_PAGE_SIZE
    data_page_size: int = DATA_PAGE_SIZE
    max_rows_per_page: int = MAX_ROWS_PER_PAGE
    data_page_version: str | int = "1.0"
    write_statistics: ColumnFlags = True
    write_page_index: bool = True
    write_page_checksum: bool = True
    bloom_filter_options: bool | Mapping[str, Any] | None = None
    column_order: str = "type"

    def resolve(self, leaves: list[Leaf]) -> list[ColumnOptions]:
        """Return the options of each leaf.

        Raises SchemaError if an option names a missing column, TypeError or ValueError if its value is invalid.
        """
        named = self._check_names(leaves)
        if self.column_order not in COLUMN_ORDERS:
            raise ValueError(f"column_order must be one of {', '.join(COLUMN_ORDERS)}, not {self.column_order!r}")
        if self.data_page_version not in _VERSIONS:
            raise ValueError(f"data_page_version must be '1.0' or '2.0', not {self.data_page_version!r}")
        for name in ("data_page_size", "max_rows_per_page", "dictionary_pagesize_limit"):
            check_positive_int(getattr(self, name), name)
        of_type: dict[int, ColumnOptions] = {}  # for leaves that no option names
        settled = []
        for leaf in leaves:
            if not named.isdisjoint(_option_names(leaf)):
                settled.append(self._resolve_leaf(leaf))
                continue
            if leaf.physical not in of_type:
                of_type[leaf.physical] = self._resolve_leaf(leaf)
            settled.append(of_type[leaf.physical])
        return settled

    def _resolve_leaf(self, leaf: Leaf) -> ColumnOptions:
        codec = _codec(_value_for(self.compression, leaf, "snappy"))
        level = _value_for(self.compression_level, leaf, None)
        if isinstance(self.compression_level, int) and codec not in COMPRESSION_LEVELS:
            level = None  # a single level applies only to codecs with levels
        compressor(codec, level)
        return ColumnOptions(
            codec=codec,
            level=level,
            encoding=self._encoding(leaf),
            use_dictionary=_flag_for(self.use_dictionary, leaf),
            dictionary_page_size=self.dictionary_pagesize_limit,
            data_page_size=self.data_page_size,
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
            raise ValueError(f"column_encoding {name!r} is not one of {', '.join(ENCODING_NAMES)}")
        return (
            encoding if _is_encodable(encoding, leaf) else None
        )  # an encoding for several columns applies where it can

    def _check_names(self, leaves: list[Leaf]) -> set[str]:
        """Check the columns that options name, and values that depend on their types; return the names."""
        all_named: set[str] = set()
        below: dict[str, list[Leaf]] = {}
        for leaf in leaves:
            for name in _option_names(leaf):
                below.setdefault(name, []).append(leaf)
        for option in _OPTIONS_BY_COLUMN:
            given = getattr(self, option)
            named: Collection[str] = given if isinstance(given, (Mapping, list, tuple, set, frozenset)) else ()
            for name in named:
                if name not in below:
                    raise _unknown_column_error(option, name, below)
            all_named.update(named)
        self._check_types(below)
        return all_named

    def _check_types(self, leaves: Mapping[str, list[Leaf]]) -> None:
        """Check encodings and Bloom filters that are given by column; `leaves` are those of each name."""
        if isinstance(self.column_encoding, Mapping):
            for name, encoding in self.column_encoding.items():
                _check_encoding(name, encoding, leaves[name])
        if isinstance(self.bloom_filter_options, Mapping):
            for name, options in self.bloom_filter_options.items():
                if _bloom_options(options) and all(leaf.physical == BOOLEAN for leaf in leaves[name]):
                    raise SchemaError("a BOOLEAN column cannot have a Bloom filter", column=name)


def _unknown_column_error(option: str, name: str, known: Iterable[str]) -> SchemaError:
    """Build the error for a missing column, with similar names."""
    close = difflib.get_close_matches(str(name), known, n=3)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return SchemaError(f"{option} names the column {name!r}, which does not exist{hint}")


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


def _codec(name: str | None) -> int:
    codec = _CODECS.get("none" if name is None else str(name).lower())
    if codec is None:
        raise ValueError(f"compression {name!r} is not one of {', '.join(_CODECS)}, or None")
    if codec == enums.LZ4:
        warnings.warn(
            "lz4_hadoop writes the deprecated LZ4 codec, which some readers misread; use lz4",
            DeprecationWarning,
            stacklevel=6,
        )
    return codec


def _bloom_options(option: object) -> BloomFilterOptions | None:
    if option is None or option is False:
        return None
    if option is True:
        return BloomFilterOptions()
    if not isinstance(option, Mapping) or not set(option) <= set(_BLOOM_OPTIONS):
        raise TypeError(f"bloom_filter_options of a column must be True or a dict of 'fpp' and 'ndv', not {option!r}")
    options = BloomFilterOptions(
        **{name: _BLOOM_OPTIONS[name](value) for name, value in option.items() if value is not None}
    )
    if not 0 < options.fpp < 1:
        raise ValueError(f"fpp, the false positive rate, must be between 0 and 1, not {options.fpp}")
    if options.ndv is not None and options.ndv < 1:
        raise ValueError(f"ndv, the number of distinct values, must be at least 1, not {options.ndv}")
    return options


def sorting_column_structs(option: SortingColumns, leaves: list[Leaf]) -> list[dict[str, Any]] | None:
    """Return SortingColumn structs; None without any.

    A column is a name, ``(name, descending)``, ``(name, descending, nulls_first)``, or an object like pyarrow's.
    """
    if not option:
        return None
    places: dict[str, int] = {}
    for leaf in reversed(leaves):
        places.update(dict.fromkeys(_option_names(leaf)[:1], leaf.index))
    return [_sorting_column(item, places) for item in option]


def _sorting_column(item: Any, places: dict[str, int]) -> dict[str, Any]:
    if hasattr(item, "column_index"):
        return {"column_idx": item.column_index, "descending": item.descending, "nulls_first": item.nulls_first}
    name, *rest = (item,) if isinstance(item, str) else item
    if name not in places:
        raise SchemaError(f"sorting_columns names the column {name!r}, which does not exist")
    order: Callable[[Any], bool] = lambda value: value.startswith("desc") if isinstance(value, str) else bool(value)  # noqa: E731
    descending = order(rest[0]) if rest else False
    nulls_first = bool(rest[1]) if len(rest) > 1 else False
    return {"column_idx": places[name], "descending": descending, "nulls_first": nulls_first}


class RowGroupSize:
    """Limits of a row group, in rows and in bytes before encoding."""

    def __init__(self, rows: int | None, size: int | None) -> None:
        self._rows = check_optional_positive_int(rows, "row_group_size") or DEFAULT_ROW_GROUP_ROWS
        self._bytes = check_optional_positive_int(size, "row_group_bytes")

    def num_rows(self, columns: Sequence[SourceColumn], num_rows: int) -> int:
        """Return the rows of a row group, by the size of rows sampled across the frame."""
        if self._bytes is None or not num_rows:
            return self._rows
        sample = min(num_rows, _SAMPLE_ROWS)
        starts = sorted({0, (num_rows - sample) // 2, num_rows - sample})
        size = sum(
            _plain_bytes(leaf)
            for start in starts
            for column in columns
            for leaf in column.read_leaves(start, start + sample)
        )
        return max(min(self._rows, int(self._bytes * sample * len(starts) / max(size, 1))), 1)


def _plain_bytes(values: LeafValues) -> int:
    """Estimate the bytes of values before encoding."""
    if values.codes is not None:
        return values.codes.nbytes
    if values.starts is not None and values.ends is not None:
        return int((values.ends - values.starts).sum()) + 4 * len(values.starts)
    return values.values.nbytes
