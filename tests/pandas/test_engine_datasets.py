"""numparq as a pandas engine: partitioned datasets and lists of files."""

from __future__ import annotations

import pandas as pd
import pandas.testing as tm
import pytest

SALES = pd.DataFrame(
    {"year": [2023, 2024, 2023, 2024], "town": ["a", "a", "c", "b"], "sold": [1, 2, 3, 4], "note": list("wxyz")}
)


def test_partitions_are_exchanged_with_pyarrow(registered_engine, tmp_path):
    pytest.importorskip("pyarrow")
    for writer in ("numparq", "pyarrow"):
        SALES.to_parquet(tmp_path / writer, engine=writer, partition_cols=["year", "town"])
        for options in ({}, {"filters": [("year", "==", 2024)]}, {"columns": ["town", "sold"]}):
            frames = [pd.read_parquet(tmp_path / writer, engine=reader, **options) for reader in ("numparq", "pyarrow")]
            tm.assert_frame_equal(*frames)


def test_dataset_arguments_without_partitions(registered_engine, tmp_path):
    SALES.to_parquet(tmp_path / "new" / "folder", engine="numparq", partition_cols=[], max_rows_per_file=3)
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 2
    tm.assert_frame_equal(pd.read_parquet(tmp_path / "new" / "folder", engine="numparq"), SALES)
    with pytest.raises(FileExistsError, match="existing_data_behavior"):
        SALES.to_parquet(tmp_path / "new" / "folder", engine="numparq", partition_cols=[])
    existing = {"existing_data_behavior": "overwrite_or_ignore", "max_partitions": 9, "basename_template": None}
    SALES.to_parquet(tmp_path / "new" / "folder", engine="numparq", partition_cols=[], **existing)
    assert len(pd.read_parquet(f"{tmp_path}/new/*", engine="numparq")) == 8


def test_partitions_without_path_are_refused(registered_engine):
    with pytest.raises((TypeError, ValueError)):
        SALES.to_parquet(engine="numparq", partition_cols=["year"])


def test_datasets_on_a_filesystem(registered_engine):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    SALES.to_parquet("memory://engine/sales", engine="numparq", partition_cols=["year"])
    read = pd.read_parquet("memory://engine/sales", engine="numparq", filters=[("year", "=", 2023)], columns=["sold"])
    assert read["sold"].tolist() == [1, 3]
    read = pd.read_parquet("/engine/sales", engine="numparq", filesystem=memory, partitioning=None)
    assert read.columns.tolist() == ["town", "sold", "note"]
    memory.rm("/engine", recursive=True)


def test_lists_of_files(registered_engine, tmp_path):
    for name in "ab":
        SALES.to_parquet(tmp_path / name, engine="numparq")
    read = pd.read_parquet([tmp_path / "a", tmp_path / "b"], engine="numparq")
    tm.assert_frame_equal(read, pd.concat([SALES, SALES], ignore_index=True))


def test_maps_as_dicts_in_a_dataset(registered_engine, tmp_path):
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"k": [1, 2], "m": [[("a", 1)], [("b", 2)]]})
    frame.to_parquet(
        tmp_path / "d", engine="numparq", partition_cols=["k"], schema={"m": pa.map_(pa.string(), pa.int64())}
    )
    read = pd.read_parquet(tmp_path / "d", engine="numparq", to_pandas_kwargs={"maps_as_pydicts": "strict"})
    assert read["m"].tolist() == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("storage", ["auto", "python"])
def test_partition_column_storage_follows_the_option(registered_engine, tmp_path, storage):
    pytest.importorskip("pyarrow")
    SALES.to_parquet(tmp_path / "d", engine="pyarrow", partition_cols=["note"])
    with pd.option_context("mode.string_storage", storage):
        frames = [pd.read_parquet(tmp_path / "d", engine=engine) for engine in ("numparq", "pyarrow")]
        tm.assert_frame_equal(*frames)
        assert frames[0]["note"].cat.categories.dtype == frames[1]["note"].cat.categories.dtype
