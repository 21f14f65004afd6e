"""GeoDataFrames as plain frames: geometries as WKB, and the ``geo`` key of GeoParquet, by which readers find them."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from .labels import unique_names


def split_geometries(df: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str | bytes]]:
    """Return a frame with WKB instead of geometries, and the keys of the footer that describe these, if any."""
    if type(df) is pd.DataFrame:  # geometries are in a subclass, which knows the primary column
        return df, {}
    positions = [position for position, dtype in enumerate(df.dtypes) if dtype.name == "geometry"]
    if not positions:
        return df, {}
    from geopandas.array import to_wkb

    plain, names = pd.DataFrame(df).copy(deep=False), unique_names(list(df.columns))
    plain.attrs = df.attrs
    columns: dict[str, Any] = {}
    for position in positions:
        array = df.iloc[:, position].array
        plain.isetitem(position, pd.Series(to_wkb(array), index=df.index, dtype=object))
        crs = None if array.crs is None else array.crs.to_json_dict()
        columns[names[position]] = {"encoding": "WKB", "geometry_types": [], "crs": crs}
    primary = getattr(df, "_geometry_column_name", None)  # None for a GeoDataFrame without an active geometry
    text = [names[position] for position in positions if df.columns[position] == primary]
    document = {"version": "1.0.0", "primary_column": (text or list(columns))[0], "columns": columns}
    return plain, {"geo": json.dumps(document)}
