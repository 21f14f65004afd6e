"""`numparq.spark.optimize` under failures and concurrent changes: all or nothing."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.spark.optimization import optimize, run
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
    """Return the bytes of all files by name, including hidden ones."""
    return {
        os.path.relpath(os.path.join(root, name), path): open(os.path.join(root, name), "rb").read()
        for root, _, names in os.walk(path)
        for name in names
    }


def test_damaged_file_changes_nothing(spark, tmp_path):
    path = dataset(tmp_path / "a")
    with open(path / "3.parquet", "r+b") as file:
        file.seek(5000)
        file.write(b"\xff\x00\xff")
    before = contents(path)
    with pytest.raises(numparq.CorruptPageError, match=r"3\.parquet.*row group 0.*column 'key'.*page 0"):
        optimize.optimize(spark, path, sort_by="key")
    assert contents(path) == before


def test_wrong_checksum_changes_nothing(spark, tmp_path, monkeypatch):
    """A wrong checksum aborts the run after all files are written."""
    path = dataset(tmp_path / "a")
    before = contents(path)
    original = OptimizeRun._checksum

    def wrong(self, table, pieces, name):
        found = original(self, table, pieces, name)
        return found + Checksum(0, 1) if name == "checksum after" else found

    monkeypatch.setattr(OptimizeRun, "_checksum", wrong)
    with pytest.raises(numparq.InvalidFileError, match=r"differ from the rows read.*Nothing was changed"):
        optimize.optimize(spark, path)
    assert contents(path) == before


def test_lost_rows_change_nothing(spark, tmp_path, monkeypatch):
    """The message of one task is dropped."""
    path = dataset(tmp_path / "a")
    before = contents(path)
    original = run.sort_and_write
    monkeypatch.setattr(run, "sort_and_write", lambda *arguments: original(*arguments)[1:])
    with pytest.raises(numparq.InvalidFileError, match="differ from the rows read"):
        optimize.optimize(spark, path, sort_by="key", target_file_bytes=40_000)
    assert contents(path) == before


def between(monkeypatch, do):
    """Call a function after the rows are written and verified, before the commit."""
    original = OptimizeRun._verify

    def verified(self, *arguments):
        found = original(self, *arguments)
        do()
        return found

    monkeypatch.setattr(OptimizeRun, "_verify", verified)


def test_files_added_during_the_run_stay(spark, tmp_path, monkeypatch):
    path = dataset(tmp_path / "a")
    new = pd.DataFrame({"row": [-1], "key": [0]})
    between(monkeypatch, lambda: numparq.to_parquet(new, path / "new.parquet"))
    report = optimize.optimize(spark, path, sort_by="key")
    assert report.status == "done"
    assert sorted(numparq.read_parquet(path)["row"]) == list(range(-1, 18_000))
    assert "new.parquet" in contents(path)


def test_file_changed_during_the_run_raises(spark, tmp_path, monkeypatch):
    path = dataset(tmp_path / "a")
    new = pd.DataFrame({"row": [-1], "key": [0]})
    between(monkeypatch, lambda: numparq.to_parquet(new, path / "2.parquet"))
    before = contents(path)
    with pytest.raises(numparq.InvalidFileError, match=r"2\.parquet"):
        optimize.optimize(spark, path, sort_by="key")
    after = contents(path)
    assert after.keys() == before.keys()
    assert all(after[name] == before[name] for name in before if name != "2.parquet")


class DyingOnce(run._WriteTask):
    """Kills the first attempts of two tasks halfway, after rows were written."""

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


def test_killed_tasks_are_retried(spark, tmp_path, monkeypatch):
    """Every row is written once, and files of the first attempts are removed."""
    from pyspark import cloudpickle

    path = dataset(tmp_path / "a")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(run, "_WriteTask", DyingOnce)
    try:
        report = optimize.optimize(spark, path, sort_by="key", target_file_bytes=30_000, row_group_bytes=10_000)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    frame = numparq.read_parquet(path)
    assert sorted(frame["row"]) == list(range(18_000))
    assert frame["key"].is_monotonic_increasing
    assert len(contents(path)) == report.after.files >= 3


def test_invalid_arguments_change_nothing(spark, tmp_path):
    path = dataset(tmp_path / "a", 2)
    before = contents(path)
    for options, error, message in (
        ({"sort_by": "key", "cluster_by": "row"}, ValueError, "cannot be combined"),
        ({"sort_by": "kee"}, numparq.SchemaError, "sort_by: the dataset has no column 'kee'; did you mean 'key'"),
        ({"bloom_filters": "kee"}, numparq.SchemaError, "'kee'.*did you mean 'key'"),
        ({"target_file_bytes": 0}, ValueError, "at least 1"),
        ({"target_file_bytes": "1"}, TypeError, "target_file_bytes must be an int"),
        ({"compression": "zipp"}, ValueError, "'zipp' is not one of"),
        ({"colour": "red"}, TypeError, "colour"),
        ({"where": "key > 3"}, ValueError, "where may use only partition columns .*, not 'key'"),
    ):
        with pytest.raises(error, match=message):
            optimize.optimize(spark, path, **options)
    assert contents(path) == before
    with pytest.raises(FileNotFoundError):
        optimize.optimize(spark, tmp_path / "none")


def test_dry_run_needs_no_session(tmp_path):
    path = dataset(tmp_path / "a")
    before = contents(path)
    report = optimize.optimize(None, path, sort_by="key", dry_run=True)  # type: ignore[arg-type]
    assert (report.status, report.before.files, report.before.rows) == ("dry run", 6, 18_000)
    assert report.after.files == 1
    assert "would optimize" in str(report)
    assert contents(path) == before


def test_dataset_without_rows_is_unchanged(tmp_path):
    path = dataset(tmp_path / "a", 3, 0)
    before = contents(path)
    report = optimize.optimize(None, path, sort_by="key", force=True)  # type: ignore[arg-type]
    assert report.status == "nothing to do"
    assert contents(path) == before
