"""Convert geometry columns for geopandas: WKB to shapely, CRS to pyproj."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.errors import InvalidFileError
from numparq.format.footer.file_metadata import Footer
from numparq.format.geospatial import GeospatialColumn, parse_geo_metadata
from numparq.util.pluralize import pluralize

if TYPE_CHECKING:
    import pandas as pd

GEOMETRIES = ("wkb", "geopandas")

_OF_PROJ = re.compile(r"^\s*\+|=")  # "+init=FILE:CODE", "+proj=... +nadgrids=FILE"
_DEFINITION = re.compile(r"\s*(\{|[A-Za-z_]+\s*[\[(])")  # PROJJSON and WKT may contain any text

_MAX_CRS = 100_000  # WKT and PROJJSON of the largest CRS in EPSG have about 20,000


def check_geometries(geometries: str) -> None:
    """Check the ``geometries`` argument; ImportError if it needs geopandas and that is not installed."""
    if geometries not in GEOMETRIES:
        raise ValueError(f"geometries must be {' or '.join(map(repr, GEOMETRIES))}, not {geometries!r}")
    if geometries == "geopandas":
        try:
            import geopandas  # noqa: F401
        except ImportError:
            raise ImportError("geometries='geopandas' needs geopandas: pip install 'numparq[geo]'") from None


def to_geodataframe(
    frame: pd.DataFrame,
    labels: Sequence[Any],
    columns: Sequence[GeospatialColumn | None],
    footer: Footer,
) -> Any:
    """Return a frame's WKB columns as a GeoDataFrame, or the frame itself if it has none; modifies the frame.

    Kind, CRS and algorithm go to its ``attrs``: geopandas knows straight edges only. InvalidFileError for bad WKB.
    """
    import geopandas

    keys, primary = footer.key_value_metadata, parse_geo_metadata(footer)["primary_column"]
    found = {label: column for label, column in zip(labels, columns, strict=True) if column is not None}
    frame_places = {label: place for place, label in reversed(list(enumerate(frame.columns)))}
    found = {label: column for label, column in found.items() if label in frame_places}
    if not found:
        return frame
    for label, column in found.items():
        values = frame.iloc[:, frame_places[label]].to_numpy(object)
        geometries = decode_wkb(values, column.leaf.name)
        made = geopandas.GeoSeries(geometries, index=frame.index, crs=parse_crs(column, keys))
        frame.isetitem(frame_places[label], made)
    active = primary if primary in found else next(iter(found))
    result = geopandas.GeoDataFrame(frame).set_geometry(active)
    result.attrs["numparq.geospatial"] = {
        label: {"kind": column.kind, "crs": column.crs, "algorithm": column.algorithm}
        for label, column in found.items()
    }
    return result


def decode_wkb(values: np.ndarray, name: str) -> np.ndarray:
    """Return shapely geometries of WKB, None at nulls; InvalidFileError naming column and row for invalid WKB."""
    import pandas as pd
    import shapely

    missing = np.asarray(pd.isna(values), bool)
    values = values.copy()
    values[missing] = None
    geometries: np.ndarray = shapely.from_wkb(values, on_invalid="ignore")
    bad = ~missing & np.array([geometry is None for geometry in geometries.tolist()], bool)
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidFileError(f"row {row} of the result is not well-known binary (WKB)", column=name)
    return geometries


def parse_crs(column: GeospatialColumn, keys: Mapping[str, bytes]) -> Any:
    """Return the pyproj CRS of a column; None if unknown (no CRS, an empty one or ``srid:0``).

    A CRS that cannot be parsed is None with a warning.
    """
    import pyproj

    text = column.crs
    if not text or text == "srid:0":
        return None
    scheme, _, rest = text.partition(":")
    try:
        if scheme == "projjson":
            return pyproj.CRS.from_json(_checked(_definition(keys, rest)))
        if scheme == "srid":  # EPSG codes, as GDAL and DuckDB read them
            return pyproj.CRS.from_epsg(int(rest))
        if _OF_PROJ.search(text) and not _DEFINITION.match(text):
            raise InvalidFileError("PROJ strings are not in the specification, and may name files")
        return pyproj.CRS.from_user_input(_checked(text))
    except (pyproj.exceptions.CRSError, InvalidFileError, ValueError) as error:
        warnings.warn(
            f"the CRS of column {column.leaf.name!r} cannot be parsed and is ignored: {error}",
            UserWarning,
            stacklevel=2,
        )
        return None


def _checked(text: str) -> str:
    if len(text) > _MAX_CRS:
        raise InvalidFileError(f"it has {pluralize(len(text), 'character')}, more than {_MAX_CRS:,}")
    return text


def _definition(keys: Mapping[str, bytes], key: str) -> str:
    """Return the PROJJSON stored under a key of the file's metadata."""
    if key not in keys:
        raise InvalidFileError(f"the file's metadata has no key {key!r}, which the CRS refers to")
    try:
        definition = json.loads(keys[key])
    except RecursionError:
        raise InvalidFileError(f"the key {key!r} of the file's metadata is nested too deeply") from None
    if not isinstance(definition, dict):
        raise InvalidFileError(f"the key {key!r} of the file's metadata does not hold a CRS")
    return json.dumps(definition)
