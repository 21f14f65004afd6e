"""Datasets of files with different schemas; pyarrow is not needed."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.format.arrow_type import ArrowType

DAY = datetime.date(2020, 1, 1)
LINES = [[{"x": 1}], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    first = pd.DataFrame(
        {
            "n": pd.array([1, 2], "int32"),
            "s": ["x", None],
            "d": [DAY, None],
            "l": pd.Series(LINES, dtype=object),
            "c": pd.Categorical(["u", "v"]),
            "e": [Decimal("1.5"), None],
            "t": np.array([1, 2], "m8[s]"),
        }
    )
    second = pd.DataFrame(
        {
            "z": [1.5],
            "n": [2**40],
            "s": pd.Categorical(["y"]),
            "d": pd.to_datetime(["2021-05-05"]),
            "l": [[{"y": "q"}]],
            "c": ["w"],
            "e": [Decimal("1.555")],
            "t": np.array([3], "m8[ms]"),
        }
    )
    numparq.to_parquet(first, tmp_path / "a.parquet")
    numparq.to_parquet(second, tmp_path / "b.parquet")
    return tmp_path


def test_columns_have_the_common_type(folder: Path) -> None:
    frame = numparq.Dataset(folder).read()
    assert list(frame.columns) == ["n", "s", "d", "l", "c", "e", "t", "z"]
    assert frame["n"].dtype == "int64"
    assert frame["n"].tolist() == [1, 2, 2**40]
    assert frame["s"].dtype == "str"
    assert frame["s"].fillna("").tolist() == ["x", "", "y"]
    assert frame["d"].tolist() == [pd.Timestamp(DAY), pd.NaT, pd.Timestamp(2021, 5, 5)]
    assert [None if line is None else line.tolist() for line in frame["l"]] == [
        [{"x": 1, "y": None}],
        None,
        [{"x": None, "y": "q"}],
    ]
    assert frame["c"].dtype == "str"
    assert frame["c"].tolist() == ["u", "v", "w"]
    assert [value and value.as_tuple().exponent for value in frame["e"]] == [-3, None, -3]
    assert frame["t"].dtype == "m8[ms]"
    assert frame["t"].tolist()[0] == pd.Timedelta(1, "s")
    assert frame["z"].tolist()[2] == 1.5
    assert frame["z"].isna().tolist() == [True, True, False]


def test_categories_merge_over_files(folder: Path) -> None:
    words = numparq.Dataset(folder).read(["s"], categories=["s"])["s"]
    assert words.cat.categories.tolist() == ["x", "y"]
    assert words.isna().tolist() == [False, True, False]


def test_user_schema_sets_types(folder: Path) -> None:
    schema = {
        "n": ArrowType("int", 64),
        "none": ArrowType("utf8"),
        "e": ArrowType("decimal", 128, precision=9, scale=4),
    }
    frame = numparq.Dataset(folder, schema=schema).read()
    assert list(frame.columns) == list(schema)
    assert frame["none"].isna().all()
    assert str(frame["e"][0]) == "1.5000"
    with pytest.raises(numparq.SchemaError, match="cannot be cast to int32"):
        numparq.Dataset(folder, schema={"n": ArrowType("int", 32)}).read()


def test_lossy_schema_merge_is_refused(folder: Path) -> None:
    numparq.to_parquet(pd.DataFrame({"n": ["x"]}), folder / "c.parquet")
    with pytest.raises(numparq.SchemaError, match=r"string here, but int32 in '.*a\.parquet'") as raised:
        numparq.Dataset(folder).read()
    assert str(raised.value.where["file"]).endswith("c.parquet")
    assert raised.value.where["column"] == "n"
