"""Replaced footers and indexes for the same pages: legal but less helpful, of buggy writers, or false.

A file is parsed with thriftpy2 and written again with its indexes after the old footer's position.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from numparq import ParquetFile
from numparq.format.column_order import ColumnOrder, leaf_order
from numparq.format.writer_quirks import STATISTICS_QUIRKS, untrusted_statistics
from support.filters.literals import pick

from .builder import extended_idl, from_bytes, to_bytes, with_footer

BOUNDS = ("min_value", "max_value")
DEPRECATED = ("min", "max")


class FileParts:
    """A parsed file: its footer and the indexes of each chunk, to be changed in place."""

    def __init__(self, data: bytes) -> None:
        (length,) = struct.unpack("<I", data[-8:-4])
        self.body = bytearray(data[: -8 - length])
        self.footer, _ = from_bytes("FileMetaData", data[-8 - length : -8])
        self.indexes: dict[tuple[int, int], dict[str, Any]] = {}
        for group, place, chunk in self.chunks():
            self.indexes[group, place] = {
                struct_name: self._struct(chunk, field, struct_name) for field, struct_name in _INDEXES.items()
            }
        with ParquetFile(data) as file:
            self.leaves = [file.schema.leaf(index) for index in range(file.schema.num_leaves)]
        self.rng = np.random.default_rng(len(data))

    def _struct(self, chunk: Any, field: str, name: str) -> Any:
        offset = getattr(chunk, f"{field}_offset")
        return None if offset is None else from_bytes(name, bytes(self.body[offset:]))[0]

    def chunks(self) -> Iterator[tuple[int, int, Any]]:
        for group, about in enumerate(self.footer.row_groups):
            for place, chunk in enumerate(about.columns):
                yield group, place, chunk

    def statistics(self) -> Iterator[tuple[ColumnOrder, Any]]:
        """Yield the statistics of chunks, each with its column's order."""
        for _, place, chunk in self.chunks():
            if chunk.meta_data.statistics is not None:
                yield self.orders[place], chunk.meta_data.statistics

    def column_indexes(self) -> Iterator[tuple[ColumnOrder, Any]]:
        for (_, place), found in self.indexes.items():
            if found["ColumnIndex"] is not None:
                yield self.orders[place], found["ColumnIndex"]

    @cached_property
    def orders(self) -> list[ColumnOrder]:
        return [leaf_order(leaf) for leaf in self.leaves]

    def data(self) -> bytes:
        body = bytearray(self.body)
        for group, place, chunk in self.chunks():
            for field, name in _INDEXES.items():
                index = self.indexes[group, place][name]
                written = None if index is None else to_bytes(index)
                setattr(chunk, f"{field}_offset", None if written is None else len(body))
                setattr(chunk, f"{field}_length", None if written is None else len(written))
                body += written or b""
        return with_footer(bytes(body), self.footer)


_INDEXES = {"column_index": "ColumnIndex", "offset_index": "OffsetIndex"}


def forge(data: bytes, forgeries: tuple[str, ...]) -> bytes:
    """Apply forgeries by their names in `LEGAL`, `BUGGY` or `LIES`."""
    if not forgeries:
        return data
    parts = FileParts(data)
    for name in sorted(forgeries, key=lambda name: name == _UNDECLARED):
        {**LEGAL, **BUGGY, **LIES}[name](parts)
    return parts.data()


def random_forgeries(rng: np.random.Generator, options: dict[str, Any]) -> tuple[str, ...]:
    """Draw legal forgeries or a writer's bugs; skips bugs that change how V2 pages are read."""
    if rng.random() < 0.3:
        of_old_pages = options.get("data_page_version") == "1.0"
        return (pick(rng, *(name for name in BUGGY if of_old_pages or not name.startswith("parquet-cpp version"))),)
    return tuple(rng.permutation(list(LEGAL))[: int(rng.integers(1, 4))].tolist())


def spoils_null_counts(forgeries: tuple[str, ...]) -> bool:
    return any(name in ("no null counts", "no statistics") or name in BUGGY for name in forgeries)


# --- legal ones -------------------------------------------------------------------------------------------------------


def _deprecated_only(parts: FileParts) -> None:
    """Keep only deprecated bounds, as before 2017, for all columns, even if unsigned or bytes."""
    parts.footer.column_orders = None
    for order, about in parts.statistics():
        for new, old in zip(BOUNDS, DEPRECATED, strict=True):
            if order.kind in ("signed", "float", "boolean"):
                setattr(about, old, getattr(about, new))
            elif getattr(about, new) is not None:
                setattr(about, old, b"\x01" * len(getattr(about, new)))
            setattr(about, new, None)


def _wrong_deprecated(parts: FileParts) -> None:
    """Write bounds of bytes and unsigned numbers compared as signed."""
    for order, about in parts.statistics():
        if order.kind in ("bytes", "unsigned", "decimal"):
            about.min, about.max = b"\x05" * (order.width or 3), b"\x06" * (order.width or 3)


def _nan_bounds(parts: FileParts) -> None:
    nan = {2: np.float16, 4: np.float32, 8: np.float64}
    for order, about in parts.statistics():
        if order.kind == "float" and about.min_value is not None:
            written = nan[order.width](np.nan).tobytes()
            which = pick(parts.rng, BOUNDS, BOUNDS[:1], BOUNDS[1:])
            for name in which:
                setattr(about, name, written)
    for place, order in enumerate(parts.orders):  # such bounds mean something in the total order
        if order.kind == "float" and len(parts.footer.column_orders or ()) == len(parts.orders):
            parts.footer.column_orders[place] = extended_idl().ColumnOrder(TYPE_ORDER=extended_idl().TypeDefinedOrder())
    for order, index in parts.column_indexes():
        if order.kind == "float":
            for page in range(len(index.null_pages)):
                if not index.null_pages[page] and parts.rng.random() < 0.5:
                    index.min_values[page] = index.max_values[page] = nan[order.width](np.nan).tobytes()
            index.boundary_order = 0


def _wrong_length(parts: FileParts) -> None:
    for order, about in parts.statistics():
        for name in BOUNDS:
            bound = getattr(about, name)
            if order.width and bound and parts.rng.random() < 0.6:
                setattr(about, name, pick(parts.rng, bound + b"\0", bound[:-1], b""))
    for order, index in parts.column_indexes():
        for values in (index.min_values, index.max_values):
            for page in range(len(values)):
                if order.width and values[page] and parts.rng.random() < 0.3:
                    values[page] = values[page][:-1]


def _no_null_counts(parts: FileParts) -> None:
    for _, about in parts.statistics():
        about.null_count = None
    for _, index in parts.column_indexes():
        index.null_counts = None


def _no_nan_counts(parts: FileParts) -> None:
    for _, about in parts.statistics():
        about.nan_count = None
    for _, index in parts.column_indexes():
        index.nan_counts = None


def _inexact(parts: FileParts) -> None:
    for _, about in parts.statistics():
        about.is_min_value_exact = pick(parts.rng, False, None)
        about.is_max_value_exact = pick(parts.rng, False, None)


def widest(order: ColumnOrder) -> tuple[bytes, bytes] | None:
    """Return the lowest and the highest possible bound."""
    width = order.width
    if order.kind == "float":
        dtype = np.dtype(f"f{width}").type
        return dtype(-np.inf).tobytes(), dtype(np.inf).tobytes()
    if order.kind == "signed":
        return b"\0" * (width - 1) + b"\x80", b"\xff" * (width - 1) + b"\x7f"
    if order.kind == "decimal":
        return b"\x80" + b"\0" * (width - 1 if width else 20), b"\x7f" + b"\xff" * (width - 1 if width else 20)
    return {
        "unsigned": (b"\0" * width, b"\xff" * width),
        "boolean": (b"\0", b"\1"),
        "bytes": (b"\0" * width, b"\xff" * (width or 90)),
    }.get(order.kind)


def _wider(parts: FileParts) -> None:
    for order, about in parts.statistics():
        wide = widest(order)
        for name, bound in zip(BOUNDS, wide or (), strict=False):
            if getattr(about, name) is not None and parts.rng.random() < 0.7:
                setattr(about, name, bound)
                setattr(about, f"is_{name}_exact", False)
    for order, index in parts.column_indexes():
        wide = widest(order)
        for values, bound in zip((index.min_values, index.max_values), wide or (), strict=False):
            for page, empty in enumerate(index.null_pages):
                if not empty and parts.rng.random() < 0.4:
                    values[page] = bound
        index.boundary_order = 0


def _all_pages_as_wide(parts: FileParts) -> None:
    """Give all pages the same bounds, which are then ordered."""
    for order, index in parts.column_indexes():
        wide = widest(order)
        if wide:
            for page, empty in enumerate(index.null_pages):
                if not empty:
                    index.min_values[page], index.max_values[page] = wide
            index.boundary_order = pick(parts.rng, 1, 2)


def _unordered(parts: FileParts) -> None:
    for _, index in parts.column_indexes():
        index.boundary_order = 0


def _one_bound(parts: FileParts) -> None:
    for _, about in parts.statistics():
        setattr(about, pick(parts.rng, *BOUNDS), None)


def _no_statistics(parts: FileParts) -> None:
    for _, _, chunk in parts.chunks():
        chunk.meta_data.statistics = None


def _no_column_index(parts: FileParts) -> None:
    for found in parts.indexes.values():
        if parts.rng.random() < 0.7:
            found["ColumnIndex"] = None


def _no_index(parts: FileParts) -> None:
    for found in parts.indexes.values():
        if parts.rng.random() < 0.6:
            found["ColumnIndex"] = found["OffsetIndex"] = None


def _no_encoding_stats(parts: FileParts) -> None:
    for _, _, chunk in parts.chunks():
        chunk.meta_data.encoding_stats = None


def _no_orders(parts: FileParts) -> None:
    parts.footer.column_orders = None


def _unset_orders(parts: FileParts) -> None:
    """Declare an unknown column order."""
    if parts.footer.column_orders:
        parts.footer.column_orders = [extended_idl().ColumnOrder() for _ in parts.footer.column_orders]


def _other_orders(parts: FileParts) -> None:
    """Declare another number of column orders than leaves."""
    if parts.footer.column_orders:
        wrong = parts.footer.column_orders[1:], parts.footer.column_orders * 2
        parts.footer.column_orders = wrong[int(parts.rng.integers(2))]


def _undeclared_lies(parts: FileParts) -> None:
    """Write false bounds without a declared order; readers must ignore them."""
    pick(parts.rng, _no_orders, _unset_orders, _other_orders)(parts)
    for group, place, chunk in parts.chunks():
        _false_bounds(parts, chunk.meta_data, parts.indexes[group, place])


def _other_zeros(parts: FileParts) -> None:
    """Write zero bounds with the signs of old writers, whatever zeros occur."""
    orders = parts.footer.column_orders
    if orders and any(order.TYPE_ORDER is None for order in orders):
        return
    for order, about in parts.statistics():
        if order.kind == "float":
            dtype = np.dtype(f"f{order.width}").type
            for name, zero in zip(BOUNDS, (dtype(0.0), dtype(-0.0)), strict=True):
                bound = getattr(about, name)
                if bound is not None and len(bound) == order.width and np.frombuffer(bound, dtype)[0] == 0:
                    setattr(about, name, zero.tobytes())


def _no_bloom_length(parts: FileParts) -> None:
    for _, _, chunk in parts.chunks():
        chunk.meta_data.bloom_filter_length = None


def _no_bloom(parts: FileParts) -> None:
    for _, _, chunk in parts.chunks():
        chunk.meta_data.bloom_filter_length = chunk.meta_data.bloom_filter_offset = None


def _no_sizes(parts: FileParts) -> None:
    for _, _, chunk in parts.chunks():
        chunk.meta_data.size_statistics = None
    for _, index in parts.column_indexes():
        index.definition_level_histograms = index.repetition_level_histograms = None


def _nobody(parts: FileParts) -> None:
    parts.footer.created_by = None


# Comes last: else deprecated bounds could be made of the lies, and a column be given an order by them.
_UNDECLARED = "undeclared lies"
LEGAL: dict[str, Callable[[FileParts], None]] = {
    "deprecated bounds only": _deprecated_only,
    "wrong deprecated bounds": _wrong_deprecated,
    "NaN bounds": _nan_bounds,
    "bounds of wrong length": _wrong_length,
    "no null counts": _no_null_counts,
    "no NaN counts": _no_nan_counts,
    "inexact": _inexact,
    "wider": _wider,
    "pages as wide": _all_pages_as_wide,
    "unordered": _unordered,
    "one bound": _one_bound,
    "no statistics": _no_statistics,
    "no column index": _no_column_index,
    "no index": _no_index,
    "no encoding stats": _no_encoding_stats,
    "no orders": _no_orders,
    "unset orders": _unset_orders,
    "orders of other leaves": _other_orders,
    _UNDECLARED: _undeclared_lies,
    "other zeros": _other_zeros,
    "no Bloom length": _no_bloom_length,
    "no Bloom filter": _no_bloom,
    "no sizes": _no_sizes,
    "by nobody": _nobody,
}


# --- bugs of writers --------------------------------------------------------------------------------------------------


def _written_by(created_by: str) -> Callable[[FileParts], None]:
    """Apply the known bugs of a writer, column by column."""

    def forge(parts: FileParts) -> None:
        parts.footer.created_by = created_by
        for group, place, chunk in parts.chunks():
            wrong = untrusted_statistics(created_by, parts.leaves[place])
            about, found = chunk.meta_data, parts.indexes[group, place]
            for what in sorted(wrong):
                _BUGS[what](parts, about, found)

    return forge


def _false_bounds(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    """Write bounds that exclude most values."""
    said = about.statistics
    if said is not None and said.min_value is not None and said.max_value is not None:
        said.min_value = said.max_value = pick(parts.rng, said.min_value, said.max_value)
    _false_pages(parts, about, found)


def _false_deprecated(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    said = about.statistics
    if said is not None and said.min_value is not None:
        said.min = said.max = said.min_value


def _false_nulls(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    if about.statistics is not None:
        about.statistics.null_count = pick(parts.rng, 0, about.num_values, about.num_values * 3)
    if found["ColumnIndex"] is not None:
        found["ColumnIndex"].null_counts = [0] * len(found["ColumnIndex"].null_pages)


def _false_pages(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    index = found["ColumnIndex"]
    if index is not None:
        some = [bound for bound in index.min_values if bound] or [b""]
        index.min_values = [some[0]] * len(index.min_values)
        index.max_values = [some[0]] * len(index.min_values)
        index.boundary_order = 1


def _false_places(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    index = found["OffsetIndex"]
    if index is not None:
        if parts.rng.random() < 0.5:
            index.page_locations = []
        for location in index.page_locations:
            location.compressed_page_size *= 2


_BUGS: dict[str, Callable[[FileParts, Any, dict[str, Any]], None]] = {
    "min_max": _false_bounds,
    "deprecated_min_max": _false_deprecated,
    "null_count": _false_nulls,
    "column_index": _false_pages,
    "offset_index": _false_places,
}


def _release_before(before: tuple[int, ...] | None) -> str:
    if before is None:
        return "1.2.3"
    major, minor, patch = before
    return f"{major}.{minor}.{patch - 1}" if patch else f"{major}.{minor - 1}.9" if minor else f"{major - 1}.9.9"


BUGGY = {
    f"{created_by} ({bug.columns})": _written_by(created_by)
    for bug in STATISTICS_QUIRKS
    for created_by in [f"{bug.name or 'somebody'} version {_release_before(bug.fixed_in)}"]
}


# --- lies -------------------------------------------------------------------------------------------------------------


def _told(lie: Callable[[FileParts, Any, dict[str, Any]], None]) -> Callable[[FileParts], None]:
    def forge(parts: FileParts) -> None:
        for group, place, chunk in parts.chunks():
            if parts.rng.random() < 0.7:
                lie(parts, chunk.meta_data, parts.indexes[group, place])

    return forge


def _swapped(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    said, index = about.statistics, found["ColumnIndex"]
    if said is not None:
        said.min_value, said.max_value = said.max_value, said.min_value
    if index is not None:
        index.min_values, index.max_values = index.max_values, index.min_values


def _empty_pages(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    if found["ColumnIndex"] is not None:
        found["ColumnIndex"].null_pages = [True] * len(found["ColumnIndex"].null_pages)


def _ordered(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    if found["ColumnIndex"] is not None:
        found["ColumnIndex"].boundary_order = pick(parts.rng, 1, 2, 77, -1)


def _ragged(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    index = found["ColumnIndex"]
    if index is not None:
        name = pick(parts.rng, "null_pages", "min_values", "max_values", "null_counts")
        setattr(index, name, pick(parts.rng, [], (getattr(index, name) or [])[:-1]))


def _moved(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    index = found["OffsetIndex"]
    for location in index.page_locations if index is not None else ():
        field = pick(parts.rng, "offset", "compressed_page_size", "first_row_index")
        number = getattr(location, field)
        setattr(location, field, int(pick(parts.rng, number + 1, number - 1, 0, -1, 2**30, number)))


def _fewer_pages(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    if found["OffsetIndex"] is not None:
        del found["OffsetIndex"].page_locations[parts.rng.integers(0, 3) :]


def _spoilt_bloom(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    if about.bloom_filter_offset is not None:
        start = about.bloom_filter_offset + int(pick(parts.rng, 0, 1, 20))
        parts.body[start : start + 8] = b"\xff" * 8
        about.bloom_filter_length = pick(parts.rng, about.bloom_filter_length, 3, -1, 2**30, None)


def _only_dictionary(parts: FileParts, about: Any, found: dict[str, Any]) -> None:
    stat = extended_idl().PageEncodingStats
    about.encoding_stats = [stat(page_type=2, encoding=0, count=1), stat(page_type=0, encoding=8, count=1)]


LIES = {
    f"lie: {lie.__name__.strip('_').replace('_', ' ')}": _told(lie)
    for lie in (
        *_BUGS.values(),
        _swapped,
        _empty_pages,
        _ordered,
        _ragged,
        _moved,
        _fewer_pages,
        _spoilt_bloom,
        _only_dictionary,
    )
}
