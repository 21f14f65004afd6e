"""numparq as a pandas engine without pyarrow installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pandas as pd
import pytest

import numparq.pandas

if importlib.util.find_spec("pyarrow") is not None:
    pytest.skip("pyarrow is installed", allow_module_level=True)


@pytest.fixture(autouse=True)
def registered():
    numparq.pandas.register(default=True)
    yield
    numparq.pandas.unregister()


def test_round_trip(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": pd.Categorical(["u", "v"])}, index=pd.Index([3, 4]))
    frame.to_parquet(tmp_path / "file")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "file"), frame)
    assert pd.read_parquet(tmp_path / "file", engine="numparq", filters=[("a", ">", 1)])["b"].isna().tolist() == [True]


def test_accessor_schema():
    assert pd.DataFrame({"a": [1]}).numparq.schema.columns == ["a"]


def test_maps_as_dicts():
    data = pd.DataFrame({"a": [np.array([1, 2])]}).to_parquet()
    read = pd.read_parquet(data, to_pandas_kwargs={"maps_as_pydicts": "strict"})
    assert read["a"][0].tolist() == [1, 2]


def test_unregistered_pandas_needs_pyarrow():
    numparq.pandas.unregister()
    with pytest.raises(ImportError, match="pyarrow"):
        pd.DataFrame({"a": [1]}).to_parquet()
