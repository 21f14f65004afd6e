"""Reads without pyarrow installed; a stage of `.ci/run` has such an environment."""

from __future__ import annotations

import base64
import importlib.util

import pandas as pd
import pytest

import numparq
from support.without_pyarrow.stored_files import FILES
from support.without_pyarrow.stored_frames import FRAMES

if importlib.util.find_spec("pyarrow") is not None:
    pytest.skip("pyarrow is installed", allow_module_level=True)


@pytest.mark.parametrize("name", FRAMES)
def test_stored_files_read_back(name: str) -> None:
    pd.testing.assert_frame_equal(numparq.read_parquet(base64.b64decode(FILES[name])), FRAMES[name])


def test_str_columns_use_python_storage() -> None:
    frame = numparq.read_parquet(base64.b64decode(FILES["strings"]))
    assert frame["text"].dtype == "str"
    assert frame["text"].dtype.storage == "python"


def test_nullable_backend() -> None:
    frame = numparq.read_parquet(base64.b64decode(FILES["numbers"]), dtype_backend="numpy_nullable")
    assert [str(dtype) for dtype in frame.dtypes] == ["Int8", "UInt64", "Float32", "boolean", "Float64"]


def test_pyarrow_backend_names_the_missing_package() -> None:
    with pytest.raises(ImportError, match="pyarrow"):
        numparq.read_parquet(base64.b64decode(FILES["numbers"]), dtype_backend="pyarrow")


def test_columns_row_range_and_include() -> None:
    data = base64.b64decode(FILES["strings"])
    frame = numparq.read_parquet(data, columns=["raw", "text"], row_range=(1, 3), include=["file", "row_number"])
    assert frame["raw"].tolist() == [None, b""]
    assert frame["text"].isna().tolist() == [True, False]
    assert frame["text"][1] == "déjà vu"
    assert frame["file"].tolist() == ["<bytes>"] * 2
    assert frame["file"].dtype == "str"
    assert frame["row_number"].tolist() == [1, 2]


def test_categories_of_strings() -> None:
    data = base64.b64decode(FILES["strings"])
    text = numparq.read_parquet(data, categories=["text"])["text"]
    assert text.cat.categories.tolist() == ["a", "déjà vu"]
    assert text.cat.codes.tolist() == [0, -1, 1]


def test_errors_of_damaged_file_and_unknown_column() -> None:
    data = base64.b64decode(FILES["strings"])
    with pytest.raises(numparq.InvalidFileError, match="truncated"):
        numparq.read_parquet(data[:-1])
    with pytest.raises(numparq.SchemaError, match="did you mean 'text'"):
        numparq.read_parquet(data, columns=["texts"])
