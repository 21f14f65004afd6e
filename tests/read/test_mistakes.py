"""Typical mistakes of a first use, reading: the exception and its exact message, which says what to do."""

from __future__ import annotations

import pandas as pd
import pytest

import numparq
from numparq import Dataset, ParquetFile, SchemaError, UnsupportedError, col, read_parquet

OPERATORS = "==, !=, <, <=, >, >=, =, in, not in"
TRUTH = (
    "the truth value of (col('a') > 1) is undefined; combine expressions by &, | and ~ in parentheses, not by and, or "
    "and not, and use between() instead of a < column < b, isin() instead of in"
)
PARTITIONING = 'partitioning must be "hive", None, a list of names, or a dict of types, not '
UNEXPECTED = "read_parquet() got an unexpected keyword argument "


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    frame = pd.DataFrame({"a": [1, 2, 3], "name": ["x", "y", None], "l": [[1], [], None]})
    numparq.to_parquet(frame, folder / "one.parquet")
    numparq.to_parquet(frame.assign(year=[2023, 2024, 2024]), folder / "years", partition_cols=["year"])
    return folder


# Arguments of read_parquet("one.parquet", ...) -> exception and its text before the location.
READS = [
    ({"columns": "a"}, TypeError, "columns must be a list of names, not 'a'; use ['a'] for one column"),
    ({"columns": 1}, TypeError, "columns must be a list of names, not 1"),
    ({"columns": [["a"]]}, TypeError, "columns must be a list of names or tuples, but ['a'] is in it"),
    ({"columns": ["A"]}, SchemaError, "the file has no column 'A'; did you mean 'a'?"),
    ({"columns": ["x"]}, SchemaError, "the file has no column 'x'; its columns are 'a', 'name', 'l'"),
    ({"filters": col("Name") == "x"}, SchemaError, "the file has no column 'Name'; did you mean 'name'?"),
    (
        {"filters": [("a", "=", ...)]},
        SchemaError,
        "Ellipsis cannot be compared with the column 'a' of type int64: it is not a number",
    ),
    (
        {"filters": [("a", ">")]},
        ValueError,
        "filters[0] must have three items (column, operator, value), not 2: ('a', '>')",
    ),
    (
        {"filters": [("a", "IN", [1])]},
        ValueError,
        f"filters[0]: operator 'IN' is not one of {OPERATORS}; did you mean 'in'?",
    ),
    (
        {"filters": col("a")},
        SchemaError,
        "True cannot be compared with the column 'a' of type int64: a column alone is a condition only if it is "
        "boolean; compare it with a literal",
    ),
    ({"nrows": -1}, ValueError, "nrows must be at least 0, not -1"),
    ({"nrows": True}, TypeError, "nrows must be an int, not True"),
    ({"row_range": (0, True)}, TypeError, "the stop of row_range must be an int, not True"),
    ({"row_groups": 0}, TypeError, "row_groups must be a list of ordinals, not 0"),
    ({"row_groups": [True]}, TypeError, "row_groups must be a list of ordinals, not [True]"),
    ({"threads": 0}, ValueError, "threads must be at least 1, not 0"),
    (
        {"dtype_backend": "arrow"},
        ValueError,
        "dtype_backend must be 'numpy_nullable' or 'pyarrow', not 'arrow'; did you mean 'pyarrow'?",
    ),
    ({"categories": "a"}, TypeError, "categories must be a list of names, not 'a'; use ['a'] for one column"),
    (
        {"categories": ["nmae"]},
        SchemaError,
        "categories names the column 'nmae', which does not exist; did you mean 'name'?",
    ),
    ({"categories": ["l"]}, SchemaError, "categories names a nested column; only flat columns can be Categorical"),
    ({"partitioning": "drill"}, ValueError, f"{PARTITIONING}'drill'"),
    ({"resolve": "names"}, ValueError, "resolve must be one of 'name', 'position', 'field_id', not 'names'"),
    (
        {"schema": 1},
        TypeError,
        "schema must be a pyarrow.Schema, a sequence of fields or a dict, not int",
    ),
    ({"include": 1}, TypeError, "include must be a list of virtual columns, not 1"),
    ({"on_error": "ignore"}, ValueError, "on_error must be 'raise' or 'skip', not 'ignore'"),
    ({"verify_crc": "no"}, TypeError, "verify_crc must be True or False, not 'no'"),
    ({"external_files": 1}, TypeError, "external_files must be True or False, not 1"),
    ({"nrow": 3}, TypeError, f"{UNEXPECTED}'nrow'; did you mean 'nrows'?"),
    ({"use_threads": False}, TypeError, f"{UNEXPECTED}'use_threads'; use threads=1 for a single thread"),
    ({"memory_map": True}, TypeError, f"{UNEXPECTED}'memory_map'; omit it, since it has no effect here"),
    ({"read_dictionary": ["a"]}, TypeError, f"{UNEXPECTED}'read_dictionary'; use categories"),
    ({"engine": "pyarrow"}, TypeError, f"{UNEXPECTED}'engine'; omit it: numparq is the engine"),
    (
        {"use_nullable_dtypes": True},
        TypeError,
        f"{UNEXPECTED}'use_nullable_dtypes'; use dtype_backend=\"numpy_nullable\"",
    ),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), READS, ids=lambda value: None)
def test_reads(folder, arguments, kind, message):
    with pytest.raises(kind) as raised:
        read_parquet(folder / "one.parquet", **arguments)
    assert getattr(raised.value, "message", str(raised.value)) == message


# Calls with the folder -> exception and its text before the location.
CALLS = [
    (
        lambda path: read_parquet(path / "years", columns=["Year"]),
        SchemaError,
        "has no column 'Year'; did you mean 'year'",
    ),
    (
        lambda path: read_parquet(path / "years", categories=["yr"]),
        SchemaError,
        "categories names the column 'yr', which",
    ),
    (
        lambda path: Dataset(path / "years", categories=["yr"]).read(),
        SchemaError,
        "categories names the column 'yr', which",
    ),
    (
        lambda path: Dataset(path / "years", categories="year"),
        TypeError,
        "categories must be a list of names, not 'year'",
    ),
    (lambda path: Dataset(path / "years", resolve="names"), ValueError, "resolve must be one of 'name', 'position', "),
    (lambda path: Dataset(path / "years", threads=0), ValueError, "threads must be at least 1, not 0"),
    (
        lambda path: Dataset(path / "years", partition=None),
        TypeError,
        "Dataset() got an unexpected keyword argument 'partition'; did you mean 'partitioning'?",
    ),
    (
        lambda path: read_parquet(path / "years", on_error="ignore"),
        ValueError,
        "on_error must be 'raise' or 'skip', not",
    ),
    (
        lambda path: ParquetFile(path / "years"),
        UnsupportedError,
        "path is a directory; numparq.read_parquet and numparq.D",
    ),
    (
        lambda path: ParquetFile(path / "one.parquet").read(nrow=1),
        TypeError,
        "ParquetFile.read() got an unexpected keyword argument 'nrow'; did you mean 'nrows'?",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), CALLS, ids=lambda value: None)
def test_datasets_and_files(folder, call, kind, message):
    with pytest.raises(kind) as raised:
        call(folder)
    assert message in str(raised.value)


def test_categories_of_other_columns_are_known(folder):
    """Names out of the partition columns, the file's other columns, virtual and exploded ones are no mistakes."""
    years = read_parquet(folder / "years", columns=["a"], categories=["year", "name"])
    assert list(years.columns) == ["a"]
    exploded = read_parquet(folder / "one.parquet", explode="l", categories=["l", "name"], include=["file"])
    assert [str(dtype) for dtype in exploded.dtypes[:3]] == ["int64", "category", "category"]


# Expressions -> the TypeError's text.
EXPRESSIONS = [
    (
        lambda: col("a") > 1 & col("b") < 5,
        "1 & col('b') needs predicates on both sides; & binds tighter than comparisons, so put these in parentheses, "
        "as in (col('a') > 1) & (col('b') < 5)",
    ),
    (
        lambda: (col("a") > 1) | col("b") < 5,
        "((col('a') > 1) | (col('b') == True)) is a condition, and cannot be compared with 5; & and | bind tighter "
        "than comparisons, so put these in parentheses, as in (col('a') > 1) & (col('b') < 5)",
    ),
    (lambda: (col("a") > 1) and (col("b") < 2), TRUTH),
    (lambda: not (col("a") > 1), TRUTH),
    (lambda: 1 < col("a") < 5, TRUTH),
    (lambda: col("a") in [1, 2], TRUTH.replace("> 1", "== 1")),
    (lambda: 1 in col("a"), "1 in col('a') is undefined; use col('a').isin([1]), or contains() for lists"),
    (lambda: col("a") == None, "col('a') == None matches no row; use is_null() to match nulls, "),  # noqa: E711
    (lambda: col("a") != None, "col('a') != None matches no row; use is_null() to match nulls, "),  # noqa: E711
]


@pytest.mark.parametrize(("expression", "message"), EXPRESSIONS, ids=lambda value: None)
def test_expressions(expression, message):
    with pytest.raises(TypeError) as raised:
        expression()
    assert str(raised.value).startswith(message)
