"""GEOMETRY and GEOGRAPHY columns (Geospatial.md), also from GeoParquet's `geo` key: CRS, edges, bounding boxes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .footer.file_metadata import Footer
from .logical_type import LogicalType
from .physical_type import BYTE_ARRAY
from .schema import Leaf, Schema

DEFAULT_CRS = "OGC:CRS84"
DEFAULT_ALGORITHM = "SPHERICAL"
_WHOLE_EARTH = (-180.0, 180.0)


class BoundingBox(NamedTuple):
    """A bounding box; `xmin` > `xmax` if it crosses the antimeridian, None for an axis without values."""

    xmin: float
    xmax: float
    ymin: float
    ymax: float
    zmin: float | None = None
    zmax: float | None = None
    mmin: float | None = None
    mmax: float | None = None


@dataclass(frozen=True)
class GeospatialColumn:
    """A geospatial leaf column.

    Attributes
    ----------
    leaf : Leaf
        The leaf column.
    kind : str
        GEOMETRY (straight edges) or GEOGRAPHY.
    crs : str or None
        Coordinate reference system as stored: authority and code, PROJJSON, ``srid:``, or ``projjson:`` and a key.
        ``"OGC:CRS84"`` if the file has none, None if the file declares it unknown.
    algorithm : str or None
        Edge interpolation of GEOGRAPHY.
    bbox : BoundingBox or None
        Bounding box of all values; None if a row group lacks one.
    geospatial_types : tuple of int, or None
        WKB codes of all values, ascending; None if a row group lacks them.
    row_groups : tuple of (BoundingBox or None, tuple of int or None)
        Bounding box and WKB codes of each row group.
    """

    leaf: Leaf
    kind: str
    crs: str | None
    algorithm: str | None
    bbox: BoundingBox | None = None
    geospatial_types: tuple[int, ...] | None = None
    row_groups: tuple[tuple[BoundingBox | None, tuple[int, ...] | None], ...] = field(default=(), repr=False)


def find_geospatial_columns(footer: Footer, schema: Schema) -> dict[str, GeospatialColumn]:
    """Return the geospatial columns by name, nested ones by their dotted path.

    Annotated columns come first, then WKB columns that only GeoParquet's `geo` key names.
    """
    found: dict[str, GeospatialColumn] = {}
    for column in range(len(schema.columns)):
        for index in schema.column_leaves(column):
            leaf = schema.leaf(index)
            logical = leaf.logical
            if leaf.physical == BYTE_ARRAY and logical is not None and logical.kind in ("GEOMETRY", "GEOGRAPHY"):
                found.setdefault(leaf.name, _annotated_column(leaf, logical, footer))
    for name, notes in parse_geo_metadata(footer)["columns"].items():
        leaf_found = schema.flat_leaf(schema.columns.index(name)) if name in schema.columns else None
        if leaf_found is not None and name not in found and leaf_found.physical == BYTE_ARRAY:
            made = _geoparquet_column(leaf_found, notes)
            if made is not None:
                found[name] = made
    return found


def parse_geo_metadata(footer: Footer) -> dict[str, Any]:
    """Return GeoParquet's ``columns`` by name and ``primary_column``; empty and None if absent or malformed."""
    try:
        document = json.loads(footer.key_value_metadata.get("geo", b"{}"))
    except (ValueError, RecursionError):
        document = {}
    document = document if isinstance(document, Mapping) else {}
    columns = document.get("columns")
    columns = columns if isinstance(columns, Mapping) else {}
    primary = document.get("primary_column")
    return {
        "columns": {name: notes for name, notes in columns.items() if isinstance(notes, Mapping)},
        "primary_column": primary if isinstance(primary, str) else None,
    }


def _annotated_column(leaf: Leaf, logical: LogicalType, footer: Footer) -> GeospatialColumn:
    stored = [_chunk_statistics(footer, group, leaf) for group in range(len(footer.row_group_num_rows))]
    row_groups = tuple(facts for facts in stored if facts is not None)
    boxes, kinds = [box for box, _ in row_groups], [codes for _, codes in row_groups]
    return GeospatialColumn(
        leaf,
        logical.kind,
        DEFAULT_CRS if logical.crs is None else logical.crs,
        (logical.algorithm or DEFAULT_ALGORITHM) if logical.kind == "GEOGRAPHY" else None,
        merge_bounding_boxes([box for box in boxes if box is not None]) if boxes and None not in boxes else None,
        tuple(sorted({code for codes in kinds for code in codes or ()})) if kinds and None not in kinds else None,
        tuple(facts or (None, None) for facts in stored),
    )


def _chunk_statistics(
    footer: Footer, row_group: int, leaf: Leaf
) -> tuple[BoundingBox | None, tuple[int, ...] | None] | None:
    """Return bounding box and WKB codes of a chunk; None if it holds only nulls."""
    facts = footer.chunks
    num_values = int(facts["num_values"][row_group, leaf.index])
    if num_values == int(facts["null_count"][row_group, leaf.index]):
        return None
    statistics = getattr(facts.chunk_record(row_group, leaf.index).meta_data, "geospatial_statistics", None)
    if statistics is None:
        return None, None
    codes = tuple(sorted(set(statistics.geospatial_types or ())))
    return _box(statistics.bbox), codes or None


def _box(bbox: Any) -> BoundingBox | None:
    """Return a bounding box of the footer; None if it is absent or invalid."""
    if bbox is None:
        return None
    box = BoundingBox(*(getattr(bbox, name) for name in BoundingBox._fields))
    usable = all(value is None or not math.isnan(value) for value in box) and box.ymin <= box.ymax
    return box if usable else None


def merge_bounding_boxes(boxes: Sequence[BoundingBox]) -> BoundingBox:
    """Return the smallest box around several; it crosses the antimeridian if one of them does."""
    xmin, xmax = _longitudes([(box.xmin, box.xmax) for box in boxes])
    return BoundingBox(
        xmin,
        xmax,
        min(box.ymin for box in boxes),
        max(box.ymax for box in boxes),
        *_axis((box.zmin, box.zmax) for box in boxes),
        *_axis((box.mmin, box.mmax) for box in boxes),
    )


def _axis(bounds: Iterable[tuple[float | None, float | None]]) -> tuple[float | None, float | None]:
    """Merge the bounds of an axis that only some values may have."""
    there = [(low, high) for low, high in bounds if low is not None and high is not None]
    return (min(low for low, _ in there), max(high for _, high in there)) if there else (None, None)


def _longitudes(ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Merge ranges of x; if one crosses the antimeridian, the others extend it at the nearer end."""
    across = [(west, east) for west, east in ranges if west > east]
    plain = [(west, east) for west, east in ranges if west <= east]
    if not across:
        return min(west for west, _ in plain), max(east for _, east in plain)
    start, end = min(west for west, _ in across), max(east for _, east in across)
    for west, east in sorted(plain):
        if west >= start or east <= end:
            continue
        if east - end <= start - west:
            end = east
        else:
            start = west
    return (start, end) if start > end else _WHOLE_EARTH


def _geoparquet_column(leaf: Leaf, notes: Mapping[str, Any]) -> GeospatialColumn | None:
    """Read GeoParquet 1.x metadata of a column; None unless it is encoded as WKB."""
    if notes.get("encoding") != "WKB":
        return None
    crs = notes.get("crs", DEFAULT_CRS)
    spherical = notes.get("edges") == "spherical"
    return GeospatialColumn(
        leaf,
        "GEOGRAPHY" if spherical else "GEOMETRY",
        crs if crs is None or isinstance(crs, str) else json.dumps(crs),
        DEFAULT_ALGORITHM if spherical else None,
        _geoparquet_box(notes.get("bbox")),
    )


def _geoparquet_box(numbers: Any) -> BoundingBox | None:
    """Read a GeoParquet box, all minima first; a third axis is z."""
    if not isinstance(numbers, list) or len(numbers) not in (4, 6, 8):
        return None
    try:
        values = [float(number) for number in numbers]
    except (TypeError, ValueError, OverflowError):
        return None
    axes = len(values) // 2
    pairs = [bound for axis in range(axes) for bound in (values[axis], values[axes + axis])]
    return BoundingBox(*pairs) if not any(map(math.isnan, pairs)) and pairs[2] <= pairs[3] else None
