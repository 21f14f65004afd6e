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
