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
from numparq.geospatial import GeospatialColumn, parse_geo_metadata

if TYPE_CHECKING:
    import pandas as pd

GEOMETRIES = ("wkb", "geopandas")

_OF_PROJ = re.compile(r"^\s*\+|=")  # "+init=FILE:CODE", "+proj=... +nadgrids=FILE"
_DEFINITION = re.compile(r"\s*(\{|[A-Za-z_]+\s*[\[(])")  # PROJJSON and WKT, in which there may be any text


def check_geometries(geometries: str) -> None:
    """Check the ``geometries`` argument, and that what it asks for is installed."""
    if geometries not in GEOMETRIES:
        raise ValueError(f"geometries is one of {', '.join(map(repr, GEOMETRIES))}, not {geometries!r}")
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
    """Turn columns of WKB into columns of geometries.

    Parameters
    ----------
    frame : pandas.DataFrame
        What was read.
    labels : sequence
        The names of the columns read.
    columns : sequence of GeospatialColumn or None
        What each of these is; None for those that are no geometries.
    footer : Footer
        The file's, where a CRS may be.

    Returns
    -------
    geopandas.GeoDataFrame
        Its active column is GeoParquet's primary one, or else the first. The frame itself where it has no such
        column. In ``attrs["numparq.geospatial"]`` stand the kind, CRS and
        algorithm of each, as the file says them; geopandas knows straight edges only.

    Raises
    ------
    InvalidFileError
        For a value that is no WKB.
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
    """Make shapely's objects of WKB; None where there is none.

    Parameters
    ----------
    values : object array
        bytes, and what pandas has for nulls.
    name : str
        The column, for messages.

    Returns
    -------
    object array
    """
    import pandas as pd
    import shapely

    missing = np.asarray(pd.isna(values), bool)
    values = values.copy()
    values[missing] = None
    geometries = shapely.from_wkb(values, on_invalid="ignore")
    bad = ~missing & np.array([geometry is None for geometry in geometries.tolist()], bool)
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidFileError(f"the value of row {row} of those read is not well-known binary (WKB)", column=name)
    return geometries


def parse_crs(column: GeospatialColumn, keys: Mapping[str, bytes]) -> Any:
    """Make pyproj's CRS of what the file says; None, with a warning, where that is not understood.

    Parameters
    ----------
    column : GeospatialColumn
        The column.
    keys : mapping of str to bytes
        The file's key-value metadata.

    Returns
    -------
    pyproj.CRS or None
        None also where the CRS is said to be unknown: none at all, an empty one, or ``srid:0``.
    """
    import pyproj

    text = column.crs
    if not text or text == "srid:0":
        return None
    scheme, _, rest = text.partition(":")
    try:
        if scheme == "projjson":
            return pyproj.CRS.from_json(_definition(keys, rest))
        if scheme == "srid":  # numbers of the authority EPSG, as GDAL and DuckDB take them
            return pyproj.CRS.from_epsg(int(rest))
        if _OF_PROJ.search(text) and not _DEFINITION.match(text):
            raise InvalidFileError("strings of PROJ may name files, and are none that the format knows")
        return pyproj.CRS.from_user_input(text)
    except (pyproj.exceptions.CRSError, InvalidFileError, ValueError) as error:
        warnings.warn(
            f"the CRS of column {column.leaf.name!r} is left out, as it is not understood: {error}",
            UserWarning,
            stacklevel=2,
        )
        return None


def _definition(keys: Mapping[str, bytes], key: str) -> str:
    """Give the PROJJSON that the file has under a key."""
    if key not in keys:
        raise InvalidFileError(f"the file has no key {key!r} in its metadata, where the CRS should be")
    try:
        definition = json.loads(keys[key])
    except RecursionError:
        raise InvalidFileError(f"the key {key!r} of the file's metadata is nested too deeply") from None
    if not isinstance(definition, dict):
        raise InvalidFileError(f"the key {key!r} of the file's metadata holds no CRS")
    return json.dumps(definition)
