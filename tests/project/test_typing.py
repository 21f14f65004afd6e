"""Types of the public API: mypy finds each mistake of a user's script, and nothing in a right one."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from typing import get_args, get_type_hints

import pytest

import numparq
from numparq import typing as public
from numparq.column.encodings import ENCODING_NAMES
from numparq.dataset.write.existing_data import EXISTING_DATA_BEHAVIORS
from numparq.file.writer_options import WriterOptions
from numparq.format.column_order import COLUMN_ORDERS

RIGHT = """
import numparq
import pandas as pd
from numparq import col

frame = pd.DataFrame({"a": [1, 2]})
content: bytes = numparq.to_parquet(frame, compression="zstd", compression_level=3, row_group_size=10)
numparq.to_parquet(frame, "x.parquet", compression={"a": "gzip"}, partition_cols=["a"], append=False)
rows: pd.DataFrame = numparq.read_parquet(content, ["a"], col("a") > 1, on_error="skip", include=["file"])
numparq.read_parquet("x.parquet", filters=[("a", ">", 1)], dates="datetime64", dtype_backend="pyarrow")
numparq.read_parquet("x.parquet", filters=~col("a") & (col("a") < 3), row_range=(1, None))
with numparq.ParquetFile(content) as file:
    count: int = file.count_rows("a > 1") + file.num_rows
    for batch in file.iter_batches(batch_rows=10):
        batch.head()
with numparq.ParquetWriter("x.parquet", use_dictionary=["a"], column_encoding={"a": "PLAIN"}) as writer:
    writer.write(frame)
with numparq.DatasetWriter("x", partition_cols=["a"], compression="ZSTD", append=False) as several:
    several.write(frame)
numparq.Dataset("x", resolve="position").read(on_error="raise")
"""

# Each line has one mistake.
WRONG = """
numparq.read_parquet("x.parquet", on_error="ignore")
numparq.read_parquet("x.parquet", include=["row"])
numparq.read_parquet("x.parquet", dates="datetime")
numparq.read_parquet("x.parquet", column=["a"])
numparq.read_parquet("x.parquet", columns=3)
numparq.read_parquet("x.parquet", dtype_backend="arrow")
numparq.read_parquet("x.parquet", nrows="10")
numparq.read_parquet("x.parquet", resolve="names")
numparq.read_parquet("x.parquet", filters=5)
numparq.read_parquet()
numparq.to_parquet(frame, "x.parquet", compression="zstandard")
numparq.to_parquet(frame, "x.parquet", existing_data_behavior="overwrite")
numparq.to_parquet(frame, "x.parquet", row_group_rows=10)
numparq.to_parquet(frame, "x.parquet", column_encoding={"a": "DELTA"})
numparq.to_parquet(frame, data_page_version="3.0")
numparq.to_parquet(frame, "x.parquet").decode()
numparq.to_parquet(frame).write("x")
numparq.ParquetWriter("x.parquet", compresion="zstd")
numparq.DatasetWriter("x", partition_by=["a"])
numparq.ParquetFile("x.parquet").tail
numparq.ParquetFile("x.parquet").read(on_error="skp")
numparq.ParquetFile("x.parquet", columns=["a"])
numparq.ParquetFile("x.parquet").num_rows.upper()
numparq.Dataset("x").plan(limit=3)
numparq.Dataset("x", table_format="delta")
numparq.col("a").str.startswith("x")
numparq.col("a").between(1)
numparq.col(3)
numparq.verify("x.parquet").valid
"""


def check(script: str, folder) -> set[int]:
    """Return the numbers of the lines in which mypy finds mistakes."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed (the extra 'lint')")
    (folder / "script.py").write_text(script)
    cache = folder / "cache"
    options = ("--config-file=", f"--cache-dir={cache}", "--ignore-missing-imports", "--follow-imports=silent")
    command = [sys.executable, "-m", "mypy", *options, "script.py"]
    environment = {**os.environ, "MYPYPATH": os.path.dirname(os.path.dirname(numparq.__file__))}
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return {int(number) for number in re.findall(r"^script\.py:(\d+): error", run.stdout, re.MULTILINE)}


@pytest.mark.slow
def test_mypy_finds_each_mistake_and_no_other(tmp_path):
    first = RIGHT.count("\n") + 2
    lines = range(first, first + len(WRONG.strip().splitlines()))
    found = check(RIGHT + "\n" + WRONG.strip() + "\n", tmp_path)
    missed = [WRONG.strip().splitlines()[number - first] for number in lines if number not in found]
    assert missed == []
    assert not {number for number in found if number < first}


@pytest.mark.parametrize(
    ("literal", "values"),
    [
        (public.Encoding, ENCODING_NAMES),
        (public.ExistingDataBehavior, EXISTING_DATA_BEHAVIORS),
        (public.ColumnOrderName, COLUMN_ORDERS),
    ],
)
def test_literals_are_the_values_that_are_accepted(literal, values):
    assert set(get_args(literal)) == set(values)


@pytest.mark.parametrize("codec", get_args(public.Codec))
def test_each_codec_is_accepted(codec):
    assert WriterOptions(compression=codec).compression == codec


def test_options_passed_by_name_are_those_of_the_writers():
    names = set(get_type_hints(public.ColumnWriteOptions))
    assert names == set(WriterOptions.__dataclass_fields__)
    of_function = set(get_type_hints(public.WriteOptions))
    code = numparq.to_parquet.__wrapped__.__wrapped__.__code__
    arguments = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    assert of_function == arguments - {"df", "path", "compression", "index", "partition_cols"}
