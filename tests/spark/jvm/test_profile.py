"""Profiles computed on Spark match those of one process; job descriptions, errors, the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.errors import InvalidFileError, SchemaError
from numparq.tools.profile.job import profile_files

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write twelve files in two partitions."""
    base = tmp_path_factory.mktemp("profiles")
    rng = np.random.default_rng(0)
    for at in range(12):
        rows = int(rng.integers(100, 900))
        frame = pd.DataFrame(
            {
                "id": rng.integers(0, 10**9, rows),
                "name": [f"name {n}" for n in rng.integers(0, 40, rows)],
                "x": np.where(rng.random(rows) < 0.1, np.nan, rng.random(rows)),
                "ts": at * 1000 + np.arange(rows),
                "lists": [[1, None, at]] * rows,
            }
        )
        place = base / f"year={2023 + at % 2}"
        place.mkdir(exist_ok=True)
        numparq.to_parquet(frame, place / f"{at:02d}.parquet", row_group_size=200, max_rows_per_page=50)
    return base


@pytest.mark.parametrize(("data", "tasks"), [("auto", None), (True, 5), (False, 1)])
def test_profile_matches_single_process(spark, folder: Path, data: bool | str, tasks: int | None) -> None:
    found = numparq.spark.profile(spark, str(folder), data=data, tasks=tasks)
    assert found.to_dict() == profile_files(str(folder), data=data).to_dict()
    assert found.num_files == 12
    assert found["ts"].lookup.files == pytest.approx(1 / 12)


def test_profile_of_files_written_by_spark(spark, tmp_path: Path) -> None:
    path = str(tmp_path / "by_spark")
    rows = spark.range(0, 5000, 1, 4).selectExpr(
        "id",
        "cast(id % 7 as string) as kind",
        "cast(id as decimal(12, 2)) as price",
        "id / 3 as x",
        "timestamp_micros(id * 1000000) as ts",
        "array(id, null) as items",
        "struct(id as a, cast(null as int) as b) as s",
    )
    rows.write.option("parquet.page.size", "1024").parquet(path)
    found = numparq.spark.profile(spark, path, data=True)
    assert (found.num_rows, found.damaged_files) == (5000, 0)
    for name, expression in {"id": "id", "kind": "kind", "price": "price", "x": "x", "ts": "ts", "s.a": "s.a"}.items():
        low, high, distinct, nulls = rows.selectExpr(
            f"min({expression})",
            f"max({expression})",
            f"count(distinct {expression})",
            f"count_if({expression} is null)",
        ).first()
        column = found[name]
        if name == "ts":  # the session's zone is UTC, Python's may differ
            low, high = pd.Timestamp(0, tz="UTC"), pd.Timestamp(4999, unit="s", tz="UTC")
            if column.min.tzinfo is None:
                low, high = low.tz_localize(None), high.tz_localize(None)
        assert (column.min, column.max, column.nulls) == (low, high, nulls), name
        assert abs(column.distinct - distinct) <= 0.06 * distinct, name
    assert (found["s.b"].nulls, found["items.list.element"].nulls) == (5000, 5000)
    assert "parquet-mr" in next(iter(found.writers))


def test_profile_of_selected_partitions_and_columns(spark, folder: Path) -> None:
    found = numparq.spark.profile(spark, folder, ["ts", "year"], where="year = 2024")
    assert [column.name for column in found] == ["ts", "year"]
    assert found.num_files == 6
    assert found["year"].min == 2024
    with pytest.raises(SchemaError, match="nowhere"):
        numparq.spark.profile(spark, folder, ["nowhere"])
    with pytest.raises(ValueError, match="tasks must be at least 1"):
        numparq.spark.profile(spark, folder, tasks=0)


def test_damaged_files_are_counted_or_raise(spark, tmp_path: Path) -> None:
    for at in range(6):
        numparq.to_parquet(pd.DataFrame({"a": [at, at + 1]}), tmp_path / f"{at}.parquet")
    (tmp_path / "2.parquet").write_bytes(b"PAR1 and nothing else")
    found = numparq.spark.profile(spark, tmp_path, tasks=3)
    assert (found.num_files, found.num_rows, found.damaged_files) == (6, 10, 1)
    assert "2.parquet" in found.troubles[0]
    with pytest.raises(InvalidFileError, match=r"2\.parquet") as caught:
        numparq.spark.profile(spark, tmp_path, tasks=3, strict=True)
    assert caught.value.where["file"].endswith("2.parquet")


def test_profile_job_description(spark, folder: Path) -> None:
    context = spark.sparkContext
    context.setJobGroup("profile-group", "mine")
    try:
        numparq.spark.profile(spark, folder, data=False, tasks=2)
        (job,) = context.statusTracker().getJobIdsForGroup("profile-group")
        store = context._jsc.sc().statusStore()
        assert store.job(job).description().get() == "mine: numparq profile: 12 files"
        assert context.getLocalProperty("spark.job.description") == "mine"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


def test_profile_command(spark, folder: Path, capsys: pytest.CaptureFixture) -> None:
    from numparq.cli import main

    assert main(["spark", "profile", str(folder), "--json", "--columns", "id,ts", "--data", "never"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [column["name"] for column in found["columns"]] == ["id", "ts"]
    assert main(["spark", "profile", str(folder), "--where", "year = 2023"]) == 0
    assert capsys.readouterr().out == str(numparq.spark.profile(spark, str(folder), where="year = 2023")) + "\n"
    assert main(["spark", "profile", str(folder / "nowhere")]) == 1
    assert "nowhere" in capsys.readouterr().err
