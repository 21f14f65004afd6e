"""The writer's options, under pyarrow's names, settled for each leaf."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import codecs
from .arguments import checked_size
from .codecs.compress import LEVELS, compressor
from .encode.encodings import NAMES, is_for
from .encode.options import (
    DATA_PAGE_SIZE,
    DICTIONARY_PAGE_SIZE,
    MAX_ROWS_PER_PAGE,
    BloomOptions,
    ColumnOptions,
)
from .errors import SchemaError
from .kernels.tables import RLE_DICTIONARY
from .schema import BOOLEAN, PHYSICAL_NAMES, Leaf
from .statistics import COLUMN_ORDERS

_CODECS = {
    "none": codecs.UNCOMPRESSED,
    "uncompressed": codecs.UNCOMPRESSED,
    "snappy": codecs.SNAPPY,
    "gzip": codecs.GZIP,
    "brotli": codecs.BROTLI,
    "zstd": codecs.ZSTD,
    "lz4": codecs.LZ4_RAW,
    "lz4_raw": codecs.LZ4_RAW,
    "lz4_hadoop": codecs.LZ4,
}
_VERSIONS = {"1.0": 1, "2.0": 2, 1: 1, 2: 2}


@dataclass(frozen=True)
class WriterOptions:
    """How columns are written; each is an argument of `numparq.to_parquet` and described there."""

    compression: Any = "snappy"
    compression_level: Any = None
    use_dictionary: Any = True
    column_encoding: Any = None
    use_byte_stream_split: Any = False
    dictionary_pagesize_limit: int = DICTIONARY_PAGE_SIZE
    data_page_size: int = DATA_PAGE_SIZE
    max_rows_per_page: int = MAX_ROWS_PER_PAGE
    data_page_version: Any = "1.0"
    write_statistics: Any = True
    write_page_index: bool = True
    write_page_checksum: bool = True
    bloom_filter_options: Any = None
    column_order: str = "type"

    def settle(self, leaves: list[Leaf]) -> list[ColumnOptions]:
        """Settle the options of each leaf.

        Parameters
        ----------
        leaves : list of Leaf
            The leaves of the schema.

        Returns
        -------
        list of ColumnOptions

        Raises
        ------
        SchemaError
            When an option names a column that there is not.
        TypeError, ValueError
            When an option is not what it must be.
        """
        named = self._check_names(leaves)
        if self.column_order not in COLUMN_ORDERS:
            raise ValueError(f"column_order is one of {', '.join(COLUMN_ORDERS)}, not {self.column_order!r}")
        if self.data_page_version not in _VERSIONS:
            raise ValueError(f"data_page_version is '1.0' or '2.0', not {self.data_page_version!r}")
        for name in ("data_page_size", "max_rows_per_page", "dictionary_pagesize_limit"):
            checked_size(getattr(self, name), name)
        of_type: dict[int, ColumnOptions] = {}  # of leaves that no option names, the same for all of a type
        settled = []
        for leaf in leaves:
            if not named.isdisjoint(_names(leaf)):
                settled.append(self._of(leaf))
                continue
            if leaf.physical not in of_type:
                of_type[leaf.physical] = self._of(leaf)
            settled.append(of_type[leaf.physical])
        return settled

    def _of(self, leaf: Leaf) -> ColumnOptions:
        codec = _codec(_choice(self.compression, leaf, "snappy"))
        level = _choice(self.compression_level, leaf, None)
        if isinstance(self.compression_level, int) and codec not in LEVELS:
            level = None  # one level for all columns concerns those whose codec has levels
        compressor(codec, level)
        return ColumnOptions(
            codec=codec, level=level, encoding=self._encoding(leaf),
            use_dictionary=_named(self.use_dictionary, leaf),
            dictionary_page_size=self.dictionary_pagesize_limit, data_page_size=self.data_page_size,
            max_rows_per_page=self.max_rows_per_page, data_page_version=_VERSIONS[self.data_page_version],
            checksum=bool(self.write_page_checksum), statistics=_named(self.write_statistics, leaf),
            page_index=bool(self.write_page_index) and _named(self.write_statistics, leaf),
            bloom=_bloom(_choice(self.bloom_filter_options, leaf, None)) if leaf.physical != BOOLEAN else None,
        )  # fmt: skip

    def _encoding(self, leaf: Leaf) -> int | None:
        name = _choice(self.column_encoding, leaf, None)
        if name is None:
            wants_split = _named(self.use_byte_stream_split, leaf, default=False)
            split = NAMES["BYTE_STREAM_SPLIT"]
            return split if wants_split and is_for(split, leaf.physical) else None
        encoding = NAMES.get(str(name).upper())
        if encoding is None:
            raise ValueError(f"column_encoding {name!r} is not one of {', '.join(NAMES)}")
        return encoding if _suits(encoding, leaf) else None  # one for several columns concerns those that it is for

    def _check_names(self, leaves: list[Leaf]) -> set[str]:
        """Check that there is what options name, and that what they say can be true of a leaf; give the names."""
        all_named: set[str] = set()
        below: dict[str, list[Leaf]] = {}
        for leaf in leaves:
            for name in _names(leaf):
                below.setdefault(name, []).append(leaf)
        for option in ("compression", "compression_level", "use_dictionary", "column_encoding",
                       "use_byte_stream_split", "write_statistics", "bloom_filter_options"):  # fmt: skip
            given = getattr(self, option)
            named: Iterable = given if isinstance(given, (Mapping, list, tuple, set, frozenset)) else ()
            for name in named:
                if name not in below:
                    raise _missing(option, name, below)
            all_named.update(named)
        if isinstance(self.column_encoding, Mapping):
            for name, encoding in self.column_encoding.items():
                _check_encoding(name, encoding, below[name])
        if isinstance(self.bloom_filter_options, Mapping):
            for name, options in self.bloom_filter_options.items():
                if _bloom(options) and all(leaf.physical == BOOLEAN for leaf in below[name]):
                    raise SchemaError("a BOOLEAN column can have no Bloom filter", column=name)
        return all_named


def _missing(option: str, name: Any, known: Iterable[str]) -> SchemaError:
    """Make the error for a column that there is not, with names like it."""
    close = difflib.get_close_matches(str(name), known, n=3)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return SchemaError(f"{option} names a column {name!r}, which is not there{hint}")


def _suits(encoding: int, leaf: Leaf) -> bool:
    return encoding == RLE_DICTIONARY or is_for(encoding, leaf.physical)


def _check_encoding(name: str, given: Any, leaves: list[Leaf]) -> None:
    """Refuse an encoding that is for none of the leaves that a name stands for."""
    encoding = NAMES.get(str(given).upper())
    if encoding is None or any(_suits(encoding, leaf) for leaf in leaves):
        return
    types = " and ".join(dict.fromkeys(PHYSICAL_NAMES[leaf.physical] for leaf in leaves))
    raise ValueError(f"column {name!r} is of physical type {types}, which {given} is not for")


def _names(leaf: Leaf) -> tuple[str, ...]:
    """Give the names by which options may know a leaf: its path, those of the groups above it, its column."""
    return tuple(".".join(leaf.path[:depth]) for depth in range(len(leaf.path), 0, -1))


def _choice(given: Any, leaf: Leaf, default: Any) -> Any:
    """Look a leaf up in an option that is one value for all columns, or a dict of them."""
    if not isinstance(given, Mapping):
        return given
    return next((given[name] for name in _names(leaf) if name in given), default)


def _named(given: Any, leaf: Leaf, default: bool = True) -> bool:
    """Look a leaf up in an option that is a bool for all columns, a dict of bools, or a list of names.

    `default` is what counts for a column that a dict does not name.
    """
    if isinstance(given, Mapping):
        return bool(_choice(given, leaf, default))
    if isinstance(given, Collection) and not isinstance(given, str):
        return any(name in given for name in _names(leaf))
    return bool(given)


def _codec(name: Any) -> int:
    codec = _CODECS.get("none" if name is None else str(name).lower())
    if codec is None:
        raise ValueError(f"compression {name!r} is not one of {', '.join(_CODECS)}, or None")
    if codec == codecs.LZ4:
        warnings.warn(
            "lz4_hadoop writes the deprecated LZ4 codec, whose framing readers do not agree on; lz4 is read by all",
            DeprecationWarning, stacklevel=6,
        )  # fmt: skip
    return codec


_BLOOM_OPTIONS = {"fpp": float, "ndv": int}


def _bloom(given: Any) -> BloomOptions | None:
    if given is None or given is False:
        return None
    if given is True:
        return BloomOptions()
    if not isinstance(given, Mapping) or not set(given) <= set(_BLOOM_OPTIONS):
        raise TypeError(f"bloom_filter_options of a column are True or a dict of 'fpp' and 'ndv', not {given!r}")
    options = BloomOptions(**{name: _BLOOM_OPTIONS[name](value) for name, value in given.items() if value is not None})
    if not 0 < options.fpp < 1:
        raise ValueError(f"fpp, the share of false positives, is between 0 and 1, not {options.fpp}")
    if options.ndv is not None and options.ndv < 1:
        raise ValueError(f"ndv, the number of distinct values, is at least 1, not {options.ndv}")
    return options


def sorting_columns(given: Any, leaves: list[Leaf]) -> list[dict[str, Any]] | None:
    """Give the SortingColumn structs of an argument ``sorting_columns``.

    Parameters
    ----------
    given : sequence, or None
        For each column a name, ``(name, descending)``, ``(name, descending, nulls_first)``, or an object with
        ``column_index``, ``descending`` and ``nulls_first``, like pyarrow's.
    leaves : list of Leaf
        The leaves of the schema.

    Returns
    -------
    list of dict, or None
    """
    if not given:
        return None
    places: dict[str, int] = {}
    for leaf in reversed(leaves):
        places.update(dict.fromkeys(_names(leaf)[:1], leaf.index))
    return [_sorting_column(item, places) for item in given]


def _sorting_column(item: Any, places: dict[str, int]) -> dict[str, Any]:
    if hasattr(item, "column_index"):
        return {"column_idx": item.column_index, "descending": item.descending, "nulls_first": item.nulls_first}
    name, *rest = (item,) if isinstance(item, str) else item
    if name not in places:
        raise SchemaError(f"sorting_columns names a column {name!r}, which is not there")
    order: Callable[[Any], bool] = lambda value: value.startswith("desc") if isinstance(value, str) else bool(value)  # noqa: E731
    descending = order(rest[0]) if rest else False
    nulls_first = bool(rest[1]) if len(rest) > 1 else False
    return {"column_idx": places[name], "descending": descending, "nulls_first": nulls_first}
