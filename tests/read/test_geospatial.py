"""GEOMETRY and GEOGRAPHY columns: metadata in the footer, and conversion to geopandas."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import CorruptPageError, InvalidFileError, ParquetFile, read_parquet
from numparq.format.geospatial import BoundingBox, merge_bounding_boxes

pa = pytest.importorskip("pyarrow")

# Geometry columns in data/geospatial of the suite: kind, CRS, algorithm, bounding box and geospatial types.
FILES = {
    "crs-default": ("GEOMETRY", "OGC:CRS84", None, (-111.0, -104.0, 41.0, 45.0), (3,)),
    "crs-geography": ("GEOGRAPHY", "OGC:CRS84", "SPHERICAL", None, None),
    "crs-projjson": ("GEOMETRY", "projjson:projjson_epsg_5070", None, None, (3,)),
    "geography-points": ("GEOGRAPHY", "OGC:CRS84", "SPHERICAL", None, (1,)),
    "geography-polygons": ("GEOGRAPHY", "OGC:CRS84", "SPHERICAL", None, (3,)),
    "geospatial": ("GEOMETRY", "OGC:CRS84", None, None, None),
}


@pytest.mark.parametrize("name", FILES)
def test_geospatial_metadata_of_the_suite(parquet_testing, name):
    kind, crs, algorithm, box, codes = FILES[name]
    with ParquetFile(parquet_testing / f"data/geospatial/{name}.parquet") as file:
        (column,) = file.geospatial.values()
    assert (column.kind, column.crs, column.algorithm) == (kind, crs, algorithm)
    if box is not None:
        assert tuple(value for value in column.bbox if value is not None) == box
    if codes is not None:
        assert column.geospatial_types == codes


def test_geospatial_statistics_of_row_groups(parquet_testing):
    """The second row group has empty geometries, the third only nulls, so the column has no bounding box."""
    with ParquetFile(parquet_testing / "data/geospatial/geospatial.parquet") as file:
        column = file.geospatial["geometry"]
    every = tuple(sorted(axes + kind for axes in (0, 1000, 2000, 3000) for kind in range(1, 8)))
    assert column.row_groups[:3] == (
        (BoundingBox(10, 40, 10, 40, 30, 80, 200, 1600), every),
        (None, every),
        (None, None),
    )
    assert column.row_groups[-1] == (BoundingBox(10, 40, 10, 40, 30, 80, 200, 1600), (3007,))
    assert [codes for _, codes in column.row_groups[3:]] == [(code,) for code in every]
    assert column.bbox is None
    assert column.geospatial_types is None


@pytest.mark.parametrize("dtype_backend", ["numpy", "pyarrow"])
@pytest.mark.parametrize("name", ["crs-arbitrary-value", "crs-default", "crs-geography", "crs-projjson", "geospatial"])
def test_geometries_match_their_wkt(parquet_testing, name, dtype_backend):
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    path = parquet_testing / f"data/geospatial/{name}.parquet"
    plain = read_parquet(path)
    got = read_parquet(path, geometries="geopandas", dtype_backend=None if dtype_backend == "numpy" else dtype_backend)
    assert isinstance(got, geopandas.GeoDataFrame)
    assert list(got.columns) == list(plain.columns)
    column = got.columns[-1]
    assert got.active_geometry_name == column
    for text, geometry in zip(plain["wkt"], got[column], strict=True):
        expected = None if pd.isna(text) else shapely.from_wkt(text)
        assert geometry is expected if expected is None else shapely.equals_identical(geometry, expected)
    number = {"crs-arbitrary-value": 5070, "crs-projjson": 5070}.get(name)
    assert got.crs.to_epsg() == number if number else got.crs.to_string() == "OGC:CRS84"
    assert got.attrs["numparq.geospatial"][column]["kind"] == FILES.get(name, ["GEOMETRY"])[0]


def test_projected_columns_and_row_ranges(parquet_testing):
    geopandas = pytest.importorskip("geopandas")
    path = parquet_testing / "data/geospatial/geospatial.parquet"
    whole = read_parquet(path, geometries="geopandas")
    part = read_parquet(path, ["geometry", "group"], geometries="geopandas", row_range=(3, 9))
    assert part.columns.tolist() == ["geometry", "group"]
    assert len(part) == 6
    assert part.geometry.tolist() == whole.geometry.tolist()[3:9]
    text = read_parquet(path, ["wkt"], geometries="geopandas")
    assert type(text) is pd.DataFrame
    assert not isinstance(text, geopandas.GeoDataFrame)


def _points(crs_notes, values=None):
    """Write a file as GeoParquet's writers do: WKB without a logical type, and the key ``geo``."""
    shapely = pytest.importorskip("shapely")
    values = values or [shapely.Point(1, 2).wkb, None, shapely.Point(3, 4).wkb]
    frame = pd.DataFrame({"name": ["a", "b", "c"], "other": values, "place": values})
    notes = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [1, 2, 3, 4], **crs_notes}
    geo = {"version": "1.1.0", "primary_column": "place", "columns": {"other": notes, "place": notes}}
    return numparq.to_parquet(frame, key_value_metadata={"geo": json.dumps(geo)})


def test_geoparquet_metadata():
    pytest.importorskip("geopandas")
    data = _points({})
    assert ParquetFile(data).geospatial["place"].bbox == BoundingBox(1, 3, 2, 4)
    got = read_parquet(data, geometries="geopandas")
    assert got.active_geometry_name == "place"
    assert got.crs.to_string() == "OGC:CRS84"
    assert [point and (point.x, point.y) for point in got["other"]] == [(1, 2), None, (3, 4)]
    assert read_parquet(_points({"crs": None}), geometries="geopandas").crs is None
    spherical = read_parquet(_points({"edges": "spherical"}), geometries="geopandas")
    assert spherical.attrs["numparq.geospatial"]["place"]["algorithm"] == "SPHERICAL"


def test_files_written_by_geopandas(tmp_path):
    geopandas, testing = pytest.importorskip("geopandas"), pytest.importorskip("geopandas.testing")
    import shapely

    frame = geopandas.GeoDataFrame(
        {"n": [1, 2]}, geometry=[shapely.Point(5, 6), shapely.box(0, 0, 1, 1)], crs="EPSG:3857"
    )
    frame.to_parquet(tmp_path / "file.parquet")
    got = read_parquet(tmp_path / "file.parquet", geometries="geopandas")
    testing.assert_geodataframe_equal(got, geopandas.read_parquet(tmp_path / "file.parquet"))


@pytest.mark.parametrize(
    "geo", ["", "[]", "{", '{"columns": 3}', '{"columns": {"place": 3, "none": {}}}', "null", "[" * 10**5]
)
def test_malformed_geo_metadata_is_ignored(geo):
    frame = pd.DataFrame({"place": [b"x"]})
    assert ParquetFile(numparq.to_parquet(frame, key_value_metadata={"geo": geo})).geospatial == {}


@pytest.mark.parametrize(
    "bbox", [None, [1, 2, 3], "abc", [1, 2, "x", 4], [math.nan, 0, 1, 1], [0, 5, 1, 4], [10**400, 0, 1, 1]]
)
def test_invalid_bbox_is_ignored(bbox):
    assert ParquetFile(_points({"bbox": bbox})).geospatial["place"].bbox is None


def test_invalid_wkb_names_the_row():
    data = _points({}, [b"nonsense", None, b"\x01\x01\x00\x00\x00"])
    with pytest.raises(InvalidFileError, match=r"row 0 of the result is not well-known binary") as caught:
        read_parquet(data, geometries="geopandas")
    assert not isinstance(caught.value, CorruptPageError)  # that error would name the page
    assert read_parquet(data)["place"][0] == b"nonsense"


@pytest.mark.parametrize("crs", ["EPSG:999999", "srid:x", "projjson:missing", "{", "projjson:geo2"])
def test_unknown_crs_warns(crs):
    pytest.importorskip("geopandas")
    with pytest.warns(UserWarning, match="the CRS of column"):
        got = read_parquet(_points({"crs": crs}), geometries="geopandas")
    assert got.crs is None
    assert got.attrs["numparq.geospatial"]["place"]["crs"] == crs


@pytest.mark.parametrize("crs", ["+init={}:1", "init={}:1", " +proj=longlat +nadgrids={}"])
def test_crs_never_opens_files(tmp_path, crs):
    pytest.importorskip("geopandas")
    named = tmp_path / "definitions"
    named.write_text("<1> +proj=longlat +datum=WGS84 +no_defs <>\n")
    with pytest.warns(UserWarning, match="PROJ strings are not in the specification"):
        assert read_parquet(_points({"crs": crs.format(named)}), geometries="geopandas").crs is None


def test_deeply_nested_crs_and_invalid_primary_column():
    geopandas = pytest.importorskip("geopandas")
    notes = {"encoding": "WKB", "crs": "projjson:deep"}
    frame = pd.DataFrame({"place": [b"\1\1\0\0\0" + np.array([1.0, 2.0]).tobytes()]})
    geo = json.dumps({"columns": {"place": notes}, "primary_column": ["place"]})
    data = numparq.to_parquet(frame, key_value_metadata={"geo": geo, "deep": "[" * 10**5})
    with pytest.warns(UserWarning, match="nested too deeply"):
        got = read_parquet(data, geometries="geopandas")
    assert isinstance(got, geopandas.GeoDataFrame)
    assert got.active_geometry_name == "place"


@pytest.mark.parametrize(("crs", "number"), [("srid:4326", 4326), ("EPSG:3857", 3857), ("srid:0", None), ("", None)])
def test_crs_notations(crs, number):
    pytest.importorskip("geopandas")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = read_parquet(_points({"crs": crs}), geometries="geopandas")
    assert (got.crs and got.crs.to_epsg()) == number


def test_invalid_geometries_option():
    with pytest.raises(ValueError, match="geometries must be 'wkb' or 'geopandas', not 'shapely'"):
        read_parquet(_points({}), geometries="shapely")


def _covers(box, x):
    return box.xmin <= x <= box.xmax if box.xmin <= box.xmax else x >= box.xmin or x <= box.xmax


def test_merge_bounding_boxes():
    """The merged box covers every box, also across the antimeridian."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        boxes = [BoundingBox(*rng.integers(-180, 181, 2).tolist(), 0, 1) for _ in range(rng.integers(1, 5))]
        whole = merge_bounding_boxes(boxes)
        for x in range(-180, 181, 3):
            if any(_covers(box, x) for box in boxes):
                assert _covers(whole, x), (boxes, whole, x)
    assert merge_bounding_boxes([BoundingBox(170, -170, 0, 1), BoundingBox(-172, -160, -3, 0)])[:4] == (
        170,
        -160,
        -3,
        1,
    )
    assert merge_bounding_boxes([BoundingBox(1, 2, 3, 4, 5, 6), BoundingBox(0, 1, 3, 9)]) == (
        0,
        2,
        3,
        9,
        5,
        6,
        None,
        None,
    )
