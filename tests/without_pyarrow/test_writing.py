"""What numparq writes where pyarrow is not installed, it reads back as it was."""

from __future__ import annotations

import importlib.util
import warnings

import pandas as pd
import pytest
from round_trips import COLUMNS, LABELS, check

import numparq

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is not None,
    reason="pyarrow is installed",
)


@pytest.mark.parametrize("name", COLUMNS)
def test_columns(name: str) -> None:
    frame = pd.DataFrame({"a": COLUMNS[name], "b": range(3)})
    for options in ({}, {"row_group_size": 2}):
        check(numparq.read_parquet(numparq.to_parquet(frame, **options)), frame)
    check(numparq.read_parquet(numparq.to_parquet(frame.iloc[:0])), frame.iloc[:0])


@pytest.mark.parametrize("name", LABELS)
def test_labels(name: str) -> None:
    frame = pd.DataFrame([range(len(LABELS[name]))], columns=LABELS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of labels that other readers will not have
        data = numparq.to_parquet(frame)
    check(numparq.read_parquet(data), frame)


def test_datasets(tmp_path) -> None:
    frame = pd.DataFrame({"key": ["a", "b c", None] * 4, "n": range(12), "text": [f"x{n}" for n in range(12)]})
    for behavior in ("error", "delete_matching"):
        numparq.to_parquet(frame, tmp_path, partition_cols=["key"], existing_data_behavior=behavior)
        found = numparq.read_parquet(tmp_path).sort_values("n", ignore_index=True)
        check(found[["n", "text"]], frame[["n", "text"]])
        assert found["key"].astype(object).fillna("-").tolist() == frame["key"].fillna("-").tolist()
