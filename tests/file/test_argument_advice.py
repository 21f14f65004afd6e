"""Arguments of other libraries: each is refused with what to pass instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.file.argument_advice import READ_ADVICE, WRITE_ADVICE

polars = pytest.importorskip("polars")
fastparquet = pytest.importorskip("fastparquet")

READERS = [
    pd.read_parquet,
    pd.read_csv,
    pd.read_feather,
    pq.read_table,
    pq.ParquetFile,
    pq.ParquetFile.read,
    pq.ParquetFile.iter_batches,
    pq.ParquetDataset,
    ds.dataset,
    polars.read_parquet,
    polars.scan_parquet,
    polars.read_csv,
    fastparquet.ParquetFile,
    fastparquet.ParquetFile.to_pandas,
]
WRITERS = [
    pd.DataFrame.to_parquet,
    pd.DataFrame.to_csv,
    pq.write_table,
    pq.write_to_dataset,
    pq.ParquetWriter,
    ds.write_dataset,
    polars.DataFrame.write_parquet,
    fastparquet.write,
]


def names(function: Callable[..., Any]) -> set[str]:
    named = inspect.signature(function).parameters.values()
    return {
        each.name
        for each in named
        if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL) and each.name[0] != "_" and each.name != "self"
    }


@pytest.mark.parametrize("function", READERS, ids=lambda each: f"{each.__module__}.{each.__qualname__}")
def test_each_argument_of_other_readers_has_advice(function):
    assert sorted(names(function) - names(numparq.read_parquet) - set(READ_ADVICE)) == []


@pytest.mark.parametrize("function", WRITERS, ids=lambda each: f"{each.__module__}.{each.__qualname__}")
def test_each_argument_of_other_writers_has_advice(function):
    assert sorted(names(function) - names(numparq.to_parquet) - set(WRITE_ADVICE)) == []


@pytest.mark.parametrize(
    ("function", "advice"), [(numparq.read_parquet, READ_ADVICE), (numparq.to_parquet, WRITE_ADVICE)]
)
def test_advice_names_arguments_that_exist(function, advice):
    used = {
        text.removeprefix("use ").partition("=")[0].partition(",")[0] for text in advice.values() if "use " in text[:4]
    }
    words = {word.strip(".()").partition(";")[0] for word in used if word.isidentifier()}
    assert words <= names(function)


DATA = numparq.to_parquet(pd.DataFrame({"a": [1]}))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: numparq.read_parquet(DATA, dtype={}), "'dtype'; convert columns of the frame with .astype(...)"),
        (
            lambda: numparq.read_parquet(DATA, skiprows=1),
            "read_parquet() got an unexpected keyword argument 'skiprows'; use row_r",
        ),
        (lambda: numparq.read_parquet(DATA, chunksize=1), "'chunksize'; use ParquetFile.iter_batches(batch_rows=...)"),
        (lambda: numparq.read_parquet(DATA, index_col="a"), "'index_col'; use .set_index(...) on the frame"),
        (
            lambda: numparq.to_parquet(pd.DataFrame(), mode="append"),
            "'mode'; use append=True to add to a file, or exis",
        ),
        (lambda: numparq.to_parquet(pd.DataFrame(), where="x"), "'where'; use path"),
        (
            lambda: numparq.ParquetFile(DATA, columns=["a"]),
            "ParquetFile() got an unexpected keyword argument 'columns'; pass it to read() or iter_batches()",
        ),
        (lambda: numparq.ParquetFile(DATA, usecols=["a"]), "'usecols'; use columns, in read()"),
        (lambda: numparq.ParquetFile(source=DATA), "'source'; use path"),
        (
            lambda: numparq.ParquetFile(DATA).read(n_rows=1),
            "ParquetFile.read() got an unexpected keyword argument 'n_rows'; use nrows",
        ),
        (lambda: numparq.ParquetFile(DATA).iter_batches(batch_size=1), "'batch_size'; use batch_rows"),
        (
            lambda: numparq.Dataset("x", filters=[]),
            "Dataset() got an unexpected keyword argument 'filters'; pass it to read()",
        ),
        (
            lambda: numparq.ParquetWriter(None, mode="a"),
            "ParquetWriter() got an unexpected keyword argument 'mode'; use append=True",
        ),
        (lambda: numparq.ParquetWriter(None, partition_cols=["a"]), "'partition_cols'; use numparq.DatasetWriter"),
        (
            lambda: numparq.DatasetWriter("x", partition_by=["a"]),
            "DatasetWriter() got an unexpected keyword argument 'partition_by'; use partition_cols",
        ),
        (lambda: numparq.ParquetWriter(None, pd.DataFrame({"a": [1]})), "not DataFrame; pass rows to write()"),
    ],
)
def test_messages(call, message):
    with pytest.raises(TypeError) as raised:
        call()
    assert message in str(raised.value)


def test_signatures_are_those_that_help_shows():
    assert list(inspect.signature(numparq.ParquetFile).parameters) == [
        "path",
        "storage_options",
        "filesystem",
        "coalescing",
        "external_files",
        "decryption",
    ]
