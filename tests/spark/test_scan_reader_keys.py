"""Splits of encrypted files as Spark's record batches: no error quotes a value."""

from __future__ import annotations

import traceback

import pandas as pd
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("cryptography")

from pyspark.sql.types import LongType, ShortType, StructType

import numparq
from numparq.errors import ParquetError
from numparq.spark.jobs.results import ResultBatchBuilder
from numparq.spark.scan.plan import SparkScan
from numparq.spark.scan.request import ReadRequest

pytestmark = pytest.mark.pyspark

NANOSECONDS = 1_234_567_890_123_456_789


@pytest.fixture
def provider(tmp_path_factory, monkeypatch):
    """Return the name of a new module of providers."""
    folder = tmp_path_factory.mktemp("providers")
    name = f"keys_of_{folder.name}"
    (folder / f"{name}.py").write_text(
        "import numparq\n"
        "def reading():\n    return numparq.Decryption(b'0123456789abcdef')\n"
        "def writing():\n    return numparq.Encryption(b'0123456789abcdef')\n"
    )
    monkeypatch.syspath_prepend(folder)
    return name


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_errors_of_casts(tmp_path, provider, is_encrypted):
    frame = pd.DataFrame({"t": pd.to_datetime([NANOSECONDS])})
    options = {"encryption": f"{provider}:writing"} if is_encrypted else {}
    numparq.to_parquet(frame, tmp_path / "a.parquet", **options)
    request = ReadRequest(tmp_path, decryption=f"{provider}:reading" if is_encrypted else None)
    scan = SparkScan.plan(request)
    with pytest.raises(ParquetError, match='nanoseconds="floor"') as caught:
        list(scan.batch_reader.read(scan.splits[0]))
    text = "".join(traceback.format_exception(caught.value))
    assert (str(NANOSECONDS) in text) is not is_encrypted
    assert ("values of encrypted files are not shown" in text) is is_encrypted
    assert caught.value.where["column"] == "t"
    assert caught.value.where["file"].endswith("a.parquet")


@pytest.mark.parametrize("hides_values", [False, True])
def test_errors_of_results(hides_values):
    results = ResultBatchBuilder(StructType().add("a", ShortType()), "fn", is_utc=True, hides_values=hides_values)
    with pytest.raises(ValueError, match="has values that do not fit smallint") as caught:
        list(results.from_frame(pd.DataFrame({"a": [7_654_321]})))
    text = "".join(traceback.format_exception(caught.value))
    assert ("7654321" in text) is not hides_values
    assert list(
        ResultBatchBuilder(StructType().add("a", LongType()), "fn", is_utc=True).from_frame(pd.DataFrame({"a": [1]}))
    )
