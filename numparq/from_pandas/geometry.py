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
    places = [place for place, dtype in enumerate(df.dtypes) if dtype.name == "geometry"]
    if not places:
        return df, {}
    from geopandas.array import to_wkb

    plain, names = pd.DataFrame(df).copy(deep=False), unique_names(list(df.columns))
    plain.attrs = df.attrs
    columns: dict[str, Any] = {}
    for place in places:
        array = df.iloc[:, place].array
        plain.isetitem(place, pd.Series(to_wkb(array), index=df.index, dtype=object))
        crs = None if array.crs is None else array.crs.to_json_dict()
        columns[names[place]] = {"encoding": "WKB", "geometry_types": [], "crs": crs}
    primary = getattr(df, "_geometry_column_name", None)  # None for a GeoDataFrame without an active geometry
    shown = [names[place] for place in places if df.columns[place] == primary]
    document = {"version": "1.0.0", "primary_column": (shown or list(columns))[0], "columns": columns}
    return plain, {"geo": json.dumps(document)}
