"""GeoDataFrames written as GeoParquet: read back by geopandas and by numparq."""

from __future__ import annotations

import io

import pytest

import numparq

geopandas = pytest.importorskip("geopandas")
shapely = pytest.importorskip("shapely")
testing = pytest.importorskip("geopandas.testing")


def frames():
    points = [shapely.Point(1, 2), None, shapely.LineString([(0, 0), (1, 1)])]
    one = geopandas.GeoDataFrame({"n": [1, 2, 3]}, geometry=points, crs=3857)
    two = one.assign(other=geopandas.GeoSeries(points[::-1], crs=4326)).set_geometry("other")
    return {"one": one, "two": two, "without a CRS": one.set_crs(None, allow_override=True)}


@pytest.mark.parametrize("case", ["one", "two", "without a CRS"])
def test_geodataframes_come_back(tmp_path, case: str):
    frame = frames()[case]
    data = numparq.to_parquet(frame)
    theirs = geopandas.read_parquet(io.BytesIO(data))
    testing.assert_geodataframe_equal(theirs, frame)
    assert theirs.geometry.name == frame.geometry.name
    ours = numparq.read_parquet(data, geometries="geopandas")
    testing.assert_geodataframe_equal(ours, frame)
    again = numparq.read_parquet(numparq.to_parquet(ours), geometries="geopandas")
    testing.assert_geodataframe_equal(again, frame)
    assert numparq.verify(data) == []


def test_what_geopandas_wrote_is_written_back(tmp_path):
    frame = frames()["two"]
    frame.to_parquet(tmp_path / "a.parquet")
    back = numparq.read_parquet(tmp_path / "a.parquet", geometries="geopandas")
    numparq.to_parquet(back, tmp_path / "b.parquet")
    numparq.to_parquet(back, tmp_path / "b.parquet", append=True)
    found = geopandas.read_parquet(tmp_path / "b.parquet")
    assert found["other"].tolist() == frame["other"].tolist() * 2
    assert (found.geometry.name, found.crs, found["geometry"].crs) == ("other", frame.crs, frame["geometry"].crs)


def test_geodataframes_are_partitioned(tmp_path):
    frame = frames()["one"].assign(k=["a", "b", "a"])
    numparq.to_parquet(frame, tmp_path / "d", partition_cols=["k"])
    found = numparq.read_parquet(tmp_path / "d", geometries="geopandas").sort_values("n")
    assert found.crs == frame.crs
    assert found.geometry.tolist() == frame.geometry.tolist()
