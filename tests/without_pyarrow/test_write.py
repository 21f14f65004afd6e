"""Writes of flat and nested columns without pyarrow installed."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.from_pandas.nested.column import nested_column
from support.data.pandas_columns import COLUMNS, LABELS, assert_round_trip

if importlib.util.find_spec("pyarrow") is not None:
    pytest.skip("pyarrow is installed", allow_module_level=True)


def test_nested_objects_become_levels() -> None:
    rows = np.fromiter([{"a": [1, None], "b": "x"}, None, {"a": []}, {"b": "yz"}], object, 4)
    numbers, texts = nested_column("c", rows).read_leaves(0, 4)
    assert numbers.definition_levels is not None
    assert numbers.repetition_levels is not None
    assert texts.definition_levels is not None
    assert numbers.definition_levels.tolist() == [4, 3, 0, 2, 1]
    assert numbers.repetition_levels.tolist() == [0, 1, 0, 0, 0]
    assert numbers.values.tolist() == [1]
    assert texts.definition_levels.tolist() == [2, 0, 1, 2]
    assert texts.values.tobytes() == b"xyz"


def test_frame_with_lists_and_structs() -> None:
    frame = pd.DataFrame({"a": [[1, 2], None, []], "b": [{"x": [np.arange(2)]}, {"x": None}, None]})
    data = numparq.to_parquet(frame)
    assert data is not None
    with numparq.ParquetFile(data) as file:
        assert [leaf.name for leaf in file.schema] == ["a.list.element", "b.x.list.element.list.element"]


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_round_trip(name: str) -> None:
    frame = pd.DataFrame({"a": COLUMNS[name], "b": range(3)})
    for options in ({}, {"row_group_size": 2}):
        assert_round_trip(numparq.read_parquet(numparq.to_parquet(frame, **options)), frame)
    assert_round_trip(numparq.read_parquet(numparq.to_parquet(frame.iloc[:0])), frame.iloc[:0])


@pytest.mark.parametrize("name", LABELS)
def test_column_labels_round_trip(name: str) -> None:
    frame = pd.DataFrame([range(len(LABELS[name]))], columns=LABELS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # labels that other readers cannot restore
        data = numparq.to_parquet(frame)
    assert_round_trip(numparq.read_parquet(data), frame)


def test_partitioned_dataset_round_trip(tmp_path) -> None:
    frame = pd.DataFrame({"key": ["a", "b c", None] * 4, "n": range(12), "text": [f"x{n}" for n in range(12)]})
    for behavior in ("error", "delete_matching"):
        numparq.to_parquet(frame, tmp_path, partition_cols=["key"], existing_data_behavior=behavior)
        found = numparq.read_parquet(tmp_path).sort_values("n", ignore_index=True)
        assert_round_trip(found[["n", "text"]], frame[["n", "text"]])
        assert found["key"].astype(object).fillna("-").tolist() == frame["key"].fillna("-").tolist()
