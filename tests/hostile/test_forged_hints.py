"""Hints that do not fit the stored type are ignored: values are those of the file without them."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
import pyarrow as pa

from support.files.edited_footers import THRIFT, write_with_footer
from support.hostile.forged_annotations import annotation_cases
from support.hostile.forged_hints import check_files, forged_cases

TESTS = Path(__file__).resolve().parents[1]
DEEP = "[" * 50_000


def extension(kind, name, parameters):
    """Mark a column as an extension type."""
    metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": parameters}
    schema = pa.schema([pa.field("a", kind, metadata=metadata)])
    return {"ARROW:schema": base64.b64encode(schema.serialize().to_pybytes())}


def pandas_entry(numpy_type, metadata=None, **document):
    """Describe column ``a`` in the pandas metadata."""
    entry = {"name": "a", "field_name": "a", "pandas_type": "x", "numpy_type": numpy_type, "metadata": metadata}
    return {"pandas": json.dumps({"index_columns": [], "column_indexes": [], "columns": [entry], **document}).encode()}


def deep_list(depth):
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


INTEGERS, FLOATS, FLAGS = pa.array([1, None, 3]), pa.array([1.5, None, -2.0]), pa.array([True, None, False])
TEXTS, MOMENTS = pa.array(["x", None, "1"]), pa.array([0, None, 10**9], pa.timestamp("us"))
LISTS = pa.array([[1], None, []], pa.list_(pa.int64()))
CASES = {
    "period of floats": (FLOATS, extension(pa.float64(), "pandas.period", '{"freq": "M"}')),
    "period without a frequency": (INTEGERS, extension(pa.int64(), "pandas.period", "{}")),
    "period of a list": (LISTS, extension(pa.list_(pa.int64()), "pandas.period", '{"freq": "M"}')),
    "interval of integers": (INTEGERS, extension(pa.int64(), "pandas.interval", '{"subtype": "a", "closed": "left"}')),
    "extension with deep parameters": (LISTS, extension(pa.list_(pa.int64()), "pandas.interval", DEEP)),
    "UUID of text": (TEXTS, extension(pa.string(), "arrow.uuid", "")),
    "dictionary of integers": (LISTS, extension(pa.list_(pa.dictionary(pa.int8(), pa.int64())), "", "")),
    "dictionary of JSON": (LISTS, extension(pa.list_(pa.dictionary(pa.int8(), pa.string())), "arrow.json", "")),
    "Arrow text of booleans": (FLAGS, pandas_entry("large_string[pyarrow]")),
    "Arrow booleans of floats": (FLOATS, pandas_entry("bool[pyarrow]")),
    "Arrow floats of text": (TEXTS, pandas_entry("double[pyarrow]")),
    "Arrow dates of moments": (MOMENTS, pandas_entry("date32[day][pyarrow]")),
    "Arrow integers of moments": (MOMENTS, pandas_entry("int64[pyarrow]")),
    "Arrow half floats": (FLOATS, pandas_entry("halffloat[pyarrow]")),
    "Sparse moments": (MOMENTS, pandas_entry("Sparse[int]")),
    "equal categories": (FLAGS, pandas_entry("x", {"numparq": {"categories": "bool", "values": [True, 1]}})),
    "moments as categories": (FLAGS, pandas_entry("x", {"numparq": {"categories": "datetime64[ns]"}})),
    "deep attributes": (INTEGERS, pandas_entry("int64", attributes={"x": deep_list(480)})),
}


@pytest.mark.parametrize("creator", [None, "numparq version 1.0"])
@pytest.mark.parametrize("name", CASES)
def test_unfit_hint(name, creator):
    column, keys = CASES[name]
    table = pa.table({"a": column})

    def edit(footer):
        footer.key_value_metadata = [THRIFT.KeyValue(key=key, value=value) for key, value in keys.items()]
        footer.created_by = creator

    assert check_files([(name, write_with_footer(table, edit), write_with_footer(table, lambda footer: None))]) == []


def test_fit_hints_are_kept():
    """Periods and durations are stored as integers, so the hint alone tells them."""
    import numparq

    for kind, keys in (
        ("duration[s][pyarrow]", pandas_entry("duration[s][pyarrow]")),
        ("period[M]", extension(pa.int64(), "pandas.period", '{"freq": "M"}')),
    ):
        pairs = [THRIFT.KeyValue(key=key, value=value) for key, value in keys.items()]
        data = write_with_footer(
            pa.table({"a": INTEGERS}), lambda footer, pairs=pairs: setattr(footer, "key_value_metadata", pairs)
        )
        assert str(numparq.read_parquet(data)["a"].dtype) == kind


def test_some_forged_hints():
    assert check_files(forged_cases(0, 4)) == []


def test_some_annotations():
    assert check_files(annotation_cases(391)) == []


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["forged_hints", "1", "500", "5"], ["forged_annotations", "3", "5"]])
def test_many_forged_files(arguments):
    module, *numbers = arguments
    command = [sys.executable, "-m", f"support.hostile.{module}", *numbers]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
