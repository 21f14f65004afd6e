"""What `numparq.spark.optimize` does when something goes wrong, or comes in between: all or nothing."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.spark.optimization import optimize, run, write
from numparq.spark.optimization.run import OptimizeRun
from numparq.tools.optimize.checksum import Checksum

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def dataset(path, files=6, rows=3000):
    random = np.random.default_rng(5)
    path.mkdir()
    for number in range(files):
        frame = pd.DataFrame({"row": np.arange(rows) + number * rows, "key": random.integers(0, 10**9, rows)})
        numparq.to_parquet(frame, path / f"{number}.parquet", use_dictionary=False, compression=None)
    return path


def contents(path):
    """Give all files, hidden ones too, and their bytes."""
    return {
        os.path.relpath(os.path.join(root, name), path): open(os.path.join(root, name), "rb").read()
        for root, _, names in os.walk(path)
        for name in names
    }


def test_a_damaged_file_is_named_and_nothing_changes(spark, tmp_path):
    path = dataset(tmp_path / "a")
    with open(path / "3.parquet", "r+b") as file:
        file.seek(5000)
        file.write(b"\xff\x00\xff")
    before = contents(path)
    with pytest.raises(numparq.CorruptPageError, match=r"3\.parquet.*row group 0.*column 'key'.*page 0"):
        optimize.optimize(spark, path, sort_by="key")
    assert contents(path) == before


def test_other_rows_are_noticed(spark, tmp_path, monkeypatch):
    """A checksum that is not the same ends it, after everything was written."""
    path = dataset(tmp_path / "a")
    before = contents(path)
    right = OptimizeRun._checksum

    def wrong(self, table, pieces, name):
        found = right(self, table, pieces, name)
        return found + Checksum(0, 1) if name == "checksum after" else found

    monkeypatch.setattr(OptimizeRun, "_checksum", wrong)
    with pytest.raises(numparq.InvalidFileError, match=r"differ from the rows read.*Nothing was changed"):
        optimize.optimize(spark, path)
    assert contents(path) == before


def test_rows_that_get_lost_are_noticed(spark, tmp_path, monkeypatch):
    """The message of one task is dropped."""
    path = dataset(tmp_path / "a")
    before = contents(path)
    right = write.sort_and_write
    monkeypatch.setattr(run, "sort_and_write", lambda *given: right(*given)[1:])
    with pytest.raises(numparq.InvalidFileError, match="differ from the rows read"):
        optimize.optimize(spark, path, sort_by="key", target_file_bytes=40_000)
    assert contents(path) == before


def between(monkeypatch, do):
    """Do something after the rows were written and verified, before the commit."""
    right = OptimizeRun._verify

    def verified(self, *given):
        found = right(self, *given)
        do()
        return found

    monkeypatch.setattr(OptimizeRun, "_verify", verified)


def test_files_that_come_meanwhile_stay(spark, tmp_path, monkeypatch):
    path = dataset(tmp_path / "a")
    new = pd.DataFrame({"row": [-1], "key": [0]})
    between(monkeypatch, lambda: numparq.to_parquet(new, path / "new.parquet"))
    report = optimize.optimize(spark, path, sort_by="key")
    assert report.status == "done"
    assert sorted(numparq.read_parquet(path)["row"]) == list(range(-1, 18_000))
    assert "new.parquet" in contents(path)


def test_a_file_that_changes_meanwhile_is_an_error(spark, tmp_path, monkeypatch):
    path = dataset(tmp_path / "a")
    new = pd.DataFrame({"row": [-1], "key": [0]})
    between(monkeypatch, lambda: numparq.to_parquet(new, path / "2.parquet"))
    before = contents(path)
    with pytest.raises(numparq.InvalidFileError, match=r"2\.parquet"):
        optimize.optimize(spark, path, sort_by="key")
    after = contents(path)
    assert after.keys() == before.keys()
    assert all(after[name] == before[name] for name in before if name != "2.parquet")


class DyingOnce(write._WriteTask):
    """Its first attempts of two tasks are killed in the middle, once rows are written."""

    def __call__(self, batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        dies = context.attemptNumber() == 0 and context.partitionId() in (0, 2)

        def some():
            for batch in batches:
                half = batch.num_rows // 2
                yield batch.slice(0, half)
                if dies:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield batch.slice(half)

        yield from super().__call__(some())


def test_killed_tasks_are_tried_again(spark, tmp_path, monkeypatch):
    """Right rows, once each, and nothing left of the first attempts."""
    from pyspark import cloudpickle

    path = dataset(tmp_path / "a")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(write, "_WriteTask", DyingOnce)
    try:
        report = optimize.optimize(spark, path, sort_by="key", target_file_bytes=30_000, row_group_bytes=10_000)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    frame = numparq.read_parquet(path)
    assert sorted(frame["row"]) == list(range(18_000))
    assert frame["key"].is_monotonic_increasing
    assert len(contents(path)) == report.after.files >= 3


def test_what_does_not_go_together(spark, tmp_path):
    path = dataset(tmp_path / "a", 2)
    before = contents(path)
    for asked, error, words in (
        ({"sort_by": "key", "cluster_by": "row"}, ValueError, "cannot be combined"),
        ({"sort_by": "kee"}, numparq.SchemaError, "sort_by: the dataset has no column 'kee'; did you mean 'key'"),
        ({"bloom_filters": "kee"}, numparq.SchemaError, "'kee'.*did you mean 'key'"),
        ({"target_file_bytes": 0}, ValueError, "at least 1"),
        ({"target_file_bytes": "1"}, TypeError, "target_file_bytes must be an int"),
        ({"compression": "zipp"}, ValueError, "'zipp' is not one of"),
        ({"colour": "red"}, TypeError, "colour"),
        ({"where": "key > 3"}, ValueError, "where is about partition columns, and 'key' is none"),
    ):
        with pytest.raises(error, match=words):
            optimize.optimize(spark, path, **asked)
    assert contents(path) == before
    with pytest.raises(FileNotFoundError):
        optimize.optimize(spark, tmp_path / "none")


def test_a_dry_run_reads_footers_only(tmp_path):
    path = dataset(tmp_path / "a")
    before = contents(path)
    report = optimize.optimize(None, path, sort_by="key", dry_run=True)  # type: ignore[arg-type]
    assert (report.status, report.before.files, report.before.rows) == ("dry run", 6, 18_000)
    assert report.after.files == 1
    assert "would optimize" in str(report)
    assert contents(path) == before


def test_datasets_without_rows(tmp_path):
    path = dataset(tmp_path / "a", 3, 0)
    before = contents(path)
    report = optimize.optimize(None, path, sort_by="key", force=True)  # type: ignore[arg-type]
    assert report.status == "nothing to do"
    assert contents(path) == before
