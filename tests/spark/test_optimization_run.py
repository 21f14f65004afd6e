"""`optimize` in this process, without Spark: compaction and options."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

import numparq  # noqa: E402
from numparq.cli.spark import parse_size  # noqa: E402
from numparq.dataset.splits.table import split_table  # noqa: E402
from numparq.errors import SchemaError, UnsupportedError  # noqa: E402
from numparq.format.schema import Leaf  # noqa: E402
from numparq.spark.optimization import optimize as optimization_optimize  # noqa: E402
from numparq.spark.optimization import run  # noqa: E402
from numparq.tools.optimize.checksum import Checksum, checksum_pieces  # noqa: E402
from numparq.tools.optimize.layout import TargetLayout  # noqa: E402
from numparq.tools.optimize.rewrite_plan import RewritePiece  # noqa: E402
from numparq.tools.optimize.tune import ROW_GROUP_BYTES, SampledCardinality, TrialWrite, trial_write, tune_options  # noqa: E402  # noqa: E402


@pytest.fixture
def optimize(monkeypatch):
    monkeypatch.setattr(run, "run_each", lambda spark, items, do, text: [do(item) for item in items])
    return lambda path, **options: optimization_optimize.optimize(None, path, **options)


def files_of(path):
    return sorted(os.path.relpath(os.path.join(root, name), path) for root, _, names in os.walk(path) for name in names)


@pytest.mark.parametrize("name", ["relative", "with a slash", "URL", "as Hadoop names it"])
def test_forms_of_dataset_paths(optimize, tmp_path, monkeypatch, name):
    for number in range(3):
        (tmp_path / "ds" / "k=01").mkdir(parents=True, exist_ok=True)
        numparq.to_parquet(pd.DataFrame({"a": [number, 7]}), tmp_path / "ds" / "k=01" / f"{number}.parquet")
    monkeypatch.chdir(tmp_path)
    report = optimize(
        {
            "relative": "ds",
            "with a slash": "./ds/",
            "URL": f"file://{tmp_path}/ds",
            "as Hadoop names it": f"file:{tmp_path}/ds",
        }[name]
    )
    assert (report.status, report.before.files, report.after.files) == ("done", 3, 1)
    (file,) = files_of(tmp_path / "ds")
    assert file.startswith("k=01/part-")
    assert numparq.read_parquet("ds")["a"].tolist() == [0, 7, 1, 7, 2, 7]


def test_unsortable_columns_are_refused(optimize, tmp_path):
    pq.write_table(pa.table({"User": [1], "list": [[1]], "none": pa.nulls(1)}), tmp_path / "0.parquet")
    for name, words in (
        ("user", "no column 'user'; did you mean 'User'"),
        ("list", "nested values.*'list'"),
        ("none", "values of Arrow type null.*'none'"),
    ):
        for what in ("sort_by", "cluster_by"):
            if (what, name) != ("cluster_by", "none"):
                with pytest.raises(SchemaError, match=words):
                    optimize(tmp_path, force=True, **{what: name})
    assert files_of(tmp_path) == ["0.parquet"]


def test_appended_file_is_optimized_again(optimize, tmp_path):
    numparq.to_parquet(pd.DataFrame({"a": [3, 4]}), tmp_path / "0.parquet")
    assert optimize(tmp_path, compression="zstd").status == "done"
    (name,) = files_of(tmp_path)
    assert optimize(tmp_path, compression="zstd").status == "nothing to do"
    numparq.to_parquet(pd.DataFrame({"a": [1]}), tmp_path / name, append=True)
    assert optimize(tmp_path, compression="zstd").status == "done"


@pytest.mark.parametrize("out", ["ds", "ds/k=01", "./else/../ds/new", "link/new"])
def test_output_in_the_dataset_is_refused(optimize, tmp_path, monkeypatch, out):
    for name in ("ds", "else"):
        (tmp_path / name).mkdir()
    numparq.to_parquet(pd.DataFrame({"a": [1, 7]}), tmp_path / "ds" / "0.parquet")
    (tmp_path / "link").symlink_to("ds")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="is inside the dataset"):
        optimize("ds", out=out)
    assert files_of(tmp_path / "ds") == ["0.parquet"]
    assert optimize("ds", out=f"file:{tmp_path}/ds2", force=True).after.rows == 2
    assert len(numparq.read_parquet("ds2")) == 2


def test_stored_types_survive(optimize, tmp_path):
    """REQUIRED, INT96, decimals as integers and field ids: new files store them like the old ones."""
    from numparq.format.logical_type import LogicalType
    from numparq.format.physical_type import INT32, INT64, INT96
    from numparq.format.schema import REQUIRED
    from numparq.format.schema_node import SchemaNode

    nodes = [
        SchemaNode("id", REQUIRED, INT64, field_id=7),
        SchemaNode("at", 1, INT96),
        SchemaNode("price", 1, INT32, logical=LogicalType("DECIMAL", precision=7, scale=2)),
    ]
    import decimal

    frame = pd.DataFrame(
        {
            "id": [1, 2, 3],
            "at": pd.to_datetime(["2026-01-02 03:04:05", None, "1900-01-01 00:00:00"]),
            "price": [decimal.Decimal("1.50"), None, decimal.Decimal("-0.01")],
        }
    )
    for number in range(3):
        numparq.to_parquet(frame, tmp_path / f"{number}.parquet", index=False, schema=nodes)
    before = numparq.read_parquet(tmp_path)
    with numparq.ParquetFile(tmp_path / "0.parquet") as file:
        schema = str(file.schema)
    optimize(tmp_path)
    (name,) = files_of(tmp_path)
    with numparq.ParquetFile(tmp_path / name) as file:
        assert str(file.schema) == schema
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path), before)


def test_target_sizes_of_files_and_row_groups(optimize, tmp_path):
    random = np.random.default_rng(1)
    for number in range(10):
        frame = pd.DataFrame({"a": random.integers(0, 1 << 60, 20_000), "b": random.random(20_000)})
        numparq.to_parquet(frame, tmp_path / f"{number}.parquet", row_group_size=1000)
    report = optimize(tmp_path, target_file_bytes=1 << 20, bloom_filters=[])
    sizes = [os.path.getsize(tmp_path / name) for name in files_of(tmp_path)]
    assert report.after.files == len(sizes) == 4
    assert max(sizes) < 1.25 * (1 << 20)
    assert min(sizes) > 0.5 * (1 << 20)
    assert report.after.row_groups <= 12 < report.before.row_groups == 200
    assert optimize(tmp_path, target_file_bytes=1 << 20, bloom_filters=[]).status == "nothing to do"
    report = optimize(tmp_path, target_file_bytes=1 << 20, row_group_size=3000, compression="zstd", bloom_filters=["a"])
    with numparq.ParquetFile(tmp_path / files_of(tmp_path)[0]) as file:
        group = file.metadata.row_groups[0]
        assert group.num_rows == 3000
        assert {chunk.meta_data.codec.name for chunk in group.columns} == {"ZSTD"}
        assert [bool(chunk.meta_data.bloom_filter_offset) for chunk in group.columns] == [True, False]


# --- options chosen from the data -------------------------------------------------------------------------------------


def leaf(name):
    return Leaf(0, 0, (name,), 2, None, None, 1, 0, 1, 1)


def test_bloom_filters_for_high_cardinality():
    trials = [
        TrialWrite(
            5000,
            1,
            1,
            1,
            {
                "id": SampledCardinality(5000, 4990),
                "kind": SampledCardinality(5000, 12),
                "few": SampledCardinality(40, 40),
                "key": SampledCardinality(5000, 5000),
            },
        )
    ]
    flat = {name: leaf(name) for name in ("id", "kind", "few", "key")}
    assert tune_options(TargetLayout(), trials, flat, ()).bloom_filters == ("id", "key")
    assert tune_options(TargetLayout(), trials, flat, ("key", "id")).bloom_filters == ("id",)
    assert tune_options(TargetLayout(), trials, {}, ()).bloom_filters == ()
    assert tune_options(TargetLayout(bloom_filters=("kind",)), trials, flat, ()).bloom_filters == ("kind",)
    assert tune_options(TargetLayout(bloom_filters=()), trials, flat, ()).bloom_filters == ()


def test_encoding_choice_needs_large_savings():
    sizes = {
        "": {"a": 100, "b": 100, "c": 100},
        "BYTE_STREAM_SPLIT": {"a": 60, "b": 90, "c": 100},
        "DELTA_BYTE_ARRAY": {"a": 100, "b": 100, "c": 20},
    }
    trials = [TrialWrite(1, 1, 1, 1, {}, sizes), TrialWrite()]
    assert tune_options(TargetLayout(), trials, {"a": leaf("a"), "b": leaf("b")}, ()).encodings == {
        "a": "BYTE_STREAM_SPLIT"
    }


def test_row_group_bytes_are_bounded():
    assert tune_options(TargetLayout(), [], {}, ()).row_group_bytes == 64 << 20
    assert tune_options(TargetLayout(), [TrialWrite(1, 100, 1000, 50)], {}, ()).row_group_bytes == ROW_GROUP_BYTES
    assert tune_options(TargetLayout(), [TrialWrite(1, 100, 1000, 50)], {}, ()).shrinkage == 0.5


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("128MB", 128 << 20), ("1.5 g", 3 << 29), ("64k", 65536)])
def test_parse_size(text, number):
    assert parse_size(text) == number


@pytest.mark.parametrize("text", ["", "MB", "-1", "0", "1 TB", "1e999", "x"])
def test_parse_size_refuses_invalid_text(text):
    with pytest.raises(ValueError, match="must be a number of bytes"):
        parse_size(text)


@pytest.mark.parametrize("kind", ["flat", "nested"])
def test_int96_nanoseconds_are_refused(tmp_path, kind):
    nanoseconds = pa.array([1_000, None, 1_234_567_890_123_456_789], pa.timestamp("ns"))
    microseconds = pa.array([1_000, None, 1_234_567_890_123_456_000], pa.timestamp("ns"))
    for name, values in (("fine", nanoseconds), ("coarse", microseconds)):
        column = values if kind == "flat" else pa.array([values.to_pylist()], pa.list_(pa.timestamp("ns")))
        pq.write_table(pa.table({"t": column}), tmp_path / f"{name}.parquet", use_deprecated_int96_timestamps=True)

    def summed(name: str) -> Checksum:
        table = split_table([str(tmp_path / f"{name}.parquet")], partitioning=None)
        return checksum_pieces(table.reader, [RewritePiece("", split) for split in table.splits])

    assert summed("coarse").rows
    with pytest.raises(UnsupportedError, match=r"nanoseconds would be truncated .*fine\.parquet"):
        summed("fine")


def test_trial_write_of_unsortable_arrow_type(tmp_path):
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes([n]) * 16 for n in range(5)], pa.binary(16)))
    pq.write_table(pa.table({"id": ids}), tmp_path / "a.parquet")
    table = split_table([str(tmp_path / "a.parquet")], partitioning=None)
    assert trial_write(table.reader, {}, ["id"], RewritePiece("", table.splits[0])).rows == 5


def test_nan_free_order_omits_bounds_of_nan_chunks(tmp_path):
    # Spark sorts NaN above all numbers, and skips row groups and pages by bounds without NaN.
    table = pa.table({"x": [1.0, float("nan"), *map(float, range(6))]})
    numparq_files = {}
    for order in ("type", "nan_free"):
        with numparq.ParquetWriter(tmp_path / order, column_order=order, row_group_size=4) as writer:
            writer.write(table.to_pandas(types_mapper=pd.ArrowDtype))
        chunks = [pq.ParquetFile(tmp_path / order).metadata.row_group(group).column(0) for group in (0, 1)]
        numparq_files[order] = [(chunk.statistics.has_min_max, chunk.has_column_index) for chunk in chunks]
    assert numparq_files == {"type": [(True, True)] * 2, "nan_free": [(False, False), (True, True)]}
