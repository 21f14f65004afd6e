"""Key-value metadata of optimized files: user keys, GeoParquet and Spark."""

from __future__ import annotations

import json
import os

import pytest

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

import numparq  # noqa: E402
from numparq.errors import SchemaError  # noqa: E402
from numparq.spark.optimization import optimize, run  # noqa: E402
from numparq.tools.optimize.key_values import merge_key_values  # noqa: E402
from numparq.tools.optimize.layout import TargetLayout  # noqa: E402
from numparq.tools.optimize.rewrite_plan import plan_rewrite  # noqa: E402

VERSION, OLD_DATES = "org.apache.spark.version", "org.apache.spark.legacyDateTime"
OLD_INT96, ZONE = "org.apache.spark.legacyINT96", "org.apache.spark.timeZone"
ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"


def write_and_plan(folder, *keys):
    for number, key_values in enumerate(keys):
        table = pa.table({"a": [1]}).replace_schema_metadata(key_values)
        pq.write_table(table, folder / f"{number}.parquet")
    return [file for one in plan_rewrite(folder, TargetLayout(), force=True).folders for file in one.files]


def merge_keys(folder, *keys, columns=("a",)):
    return {
        key: bytes(value, "utf-8") if isinstance(value, str) else value
        for key, value in merge_key_values(write_and_plan(folder, *keys), columns).items()
    }


def test_keys_equal_in_all_files_are_kept(tmp_path):
    assert merge_keys(tmp_path, {"who": "me", "part": "1"}, {"part": "2", "who": "me"}, {"who": "me"}) == {"who": b"me"}


def test_equal_keys_are_shared_between_files(tmp_path):
    found = write_and_plan(tmp_path, {"who": "me"}, {"who": "me"})
    assert found[0].key_values is found[1].key_values


# --- GeoParquet -------------------------------------------------------------------------------------------------------


def geo(**notes):
    column = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [0, 0, 1, 1], **notes}
    return {"geo": json.dumps({"version": "1.1.0", "primary_column": "a", "columns": {"a": column}})}


def test_geo_bounding_boxes_are_dropped_on_merge(tmp_path):
    covering = {"bbox": {"xmin": ["box", "xmin"]}}
    other = geo(bbox=[5, 5, 6, 6], geometry_types=["Polygon"], covering=covering)
    found = merge_keys(tmp_path, geo(covering=covering), other)
    assert json.loads(found["geo"])["columns"]["a"] == {
        "encoding": "WKB",
        "geometry_types": ["Point", "Polygon"],
        "covering": covering,
    }


@pytest.mark.parametrize("other", [{}, geo(geometry_types=[]), geo(geometry_types=7)])
def test_unknown_geometry_types(tmp_path, other):
    column = json.loads(merge_keys(tmp_path, geo(), other)["geo"])["columns"]["a"]
    assert column == {"encoding": "WKB", "geometry_types": []}


def test_geo_metadata_of_one_file_is_unchanged(tmp_path):
    assert json.loads(merge_keys(tmp_path, geo())["geo"])["columns"]["a"]["bbox"] == [0, 0, 1, 1]


def test_geometries_of_different_crs_raise(tmp_path):
    with pytest.raises(SchemaError, match="CRS or edges"):
        merge_keys(tmp_path, geo(crs={"id": 1}), geo(crs={"id": 2}))


# --- Spark types ------------------------------------------------------------------------------------------------------


def row_metadata(*fields):
    fields = [{"name": name, "type": kind, "nullable": nullable, "metadata": {}} for name, kind, nullable in fields]
    return {ROW_METADATA: json.dumps({"type": "struct", "fields": fields})}


def test_spark_row_metadata_is_merged(tmp_path):
    interval = ("i", "interval day to second", False)
    found = merge_keys(
        tmp_path, row_metadata(interval), row_metadata(("b", "long", True), interval), columns=("i", "b")
    )
    fields = json.loads(found[ROW_METADATA])["fields"]
    assert [(field["name"], field["type"], field["nullable"]) for field in fields] == [
        ("i", "interval day to second", True),
        ("b", "long", True),
    ]


@pytest.mark.parametrize(
    "other",
    [
        {},
        row_metadata(("a", "integer", True)),
        {ROW_METADATA: "{"},
        {ROW_METADATA: '{"fields": [{"name": []}]}'},
        {ROW_METADATA: '{"fields": [7]}'},
        row_metadata(("b", "long", True)),
    ],
)
def test_conflicting_spark_row_metadata_is_dropped(tmp_path, other):
    assert ROW_METADATA not in merge_keys(tmp_path, row_metadata(("a", "long", True)), other, columns=("a", "c"))


# --- Spark calendars --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "after"),
    [
        ([{VERSION: "3.5.0"}, {VERSION: "4.0.0"}, {}], {VERSION: b"3.5.0"}),
        ([{VERSION: "2.4.8"}, {VERSION: "2.4.0"}], {VERSION: b"3.1.0"}),
        ([{VERSION: "3.5.0", OLD_DATES: "", ZONE: "UTC"}] * 2, {VERSION: b"3.5.0"}),
        ([{VERSION: "3.5.0"}, {VERSION: "4.0.0", OLD_DATES: ""}], {VERSION: b"3.5.0"}),
        ([{VERSION: "4.0.0"}, {VERSION: "3.5.0", OLD_INT96: ""}], {VERSION: b"3.5.0"}),
        ([{VERSION: "3.0.1"}, {VERSION: "3.5.0"}], {VERSION: b"3.1.0"}),
        ([{VERSION: "2.4.8", ZONE: "Asia/Tokyo"}, {}], {VERSION: b"3.1.0"}),
    ],
)
def test_spark_keys_tell_of_todays_calendar(tmp_path, keys, after):
    assert merge_key_values(write_and_plan(tmp_path, *keys), ("a",)) == after


def test_files_without_rows_do_not_count(tmp_path):
    write_and_plan(tmp_path, {VERSION: "4.0.0"}, {VERSION: "2.4.8"})
    pq.write_table(
        pa.table({"a": pa.array([], pa.int64())}).replace_schema_metadata({VERSION: "2.4.8"}), tmp_path / "1.parquet"
    )
    found = [file for one in plan_rewrite(tmp_path, TargetLayout(), force=True).folders for file in one.files]
    assert merge_key_values(found, ("a",)) == {VERSION: b"4.0.0"}


def test_files_of_both_calendars_are_merged_as_read(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "run_each", lambda spark, items, do, text: [do(item) for item in items])
    columns = {
        "day": pa.array([0, None, -171_604], pa.int32()).cast(pa.date32()),
        "moments": pa.array([[0], None, [None, -(10**16)]], pa.list_(pa.timestamp("us", "UTC"))),
    }
    for name, version in (("new", "4.0.0"), ("old", "2.4.8")):
        pq.write_table(pa.table(columns).replace_schema_metadata({VERSION: version}), tmp_path / f"{name}.parquet")
    before = numparq.read_parquet(tmp_path, dtype_backend="pyarrow")
    assert before["day"][2] != before["day"][5]
    assert optimize.optimize(None, tmp_path).status == "done"
    (name,) = os.listdir(tmp_path)
    assert pq.read_metadata(tmp_path / name).metadata[VERSION.encode()] == b"3.1.0"
    assert numparq.read_parquet(tmp_path, dtype_backend="pyarrow").equals(before)
