"""Nested columns of objects, written where pyarrow is not installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.from_pandas.nested.column import nested_column

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is not None,
    reason="pyarrow is installed",
)


def test_objects_become_levels() -> None:
    rows = np.fromiter([{"a": [1, None], "b": "x"}, None, {"a": []}, {"b": "yz"}], object, 4)
    numbers, texts = nested_column("c", rows).leaves(0, 4)
    assert numbers.definition is not None
    assert numbers.repetition is not None
    assert texts.definition is not None
    assert numbers.definition.tolist() == [4, 3, 0, 2, 1]
    assert numbers.repetition.tolist() == [0, 1, 0, 0, 0]
    assert numbers.values.tolist() == [1]
    assert texts.definition.tolist() == [2, 0, 1, 2]
    assert texts.values.tobytes() == b"xyz"


def test_a_frame_with_lists_is_written() -> None:
    frame = pd.DataFrame({"a": [[1, 2], None, []], "b": [{"x": [np.arange(2)]}, {"x": None}, None]})
    data = numparq.to_parquet(frame)
    assert data is not None
    with numparq.ParquetFile(data) as file:
        assert [leaf.name for leaf in file.schema] == ["a.list.element", "b.x.list.element.list.element"]
