"""Worker errors parsed from the exceptions that Spark raises on the driver. Needs no Spark."""

from __future__ import annotations

import os
import pickle
import traceback

import pytest

from numparq import errors
from numparq.spark.worker_errors import parse_parquet_error, raise_worker_errors, sentence_first

KINDS = [
    errors.ParquetError,
    errors.CorruptPageError,
    errors.InvalidFileError,
    errors.UnsupportedError,
    errors.DecryptionError,
    errors.SchemaError,
    errors.LimitError,
]
LOCATIONS = [
    {},
    {"file": "/data/a.parquet"},
    {"file": "s3://bucket/it's (1).parquet", "row_group": 3, "column": "x, y", "page": 2},
    {"file": 'C:\\data\\"a".parquet', "column": ("a", "b")},
    {"row_group": 0},
    {"column": "page 3)"},
    {"file": "/a", "reason": "other"},
]
MESSAGES = ["the checksum does not match", "two\nlines", "", "ends (file 'x')", "é ✓ (page 3) of it"]


def raised(error, frame="", after=""):
    """Return Spark's exception with the worker's traceback as text."""
    try:
        try:
            raise KeyError("before")
        except KeyError:
            raise error  # noqa: B904
    except Exception:
        text = traceback.format_exc()
    return RuntimeError(f"{frame}An exception was thrown from the Python worker:\n{text}{after}")


@pytest.mark.parametrize("where", LOCATIONS, ids=str)
@pytest.mark.parametrize("message", MESSAGES)
def test_class_and_message_of_worker_errors(message, where):
    for kind in KINDS:
        found = parse_parquet_error(raised(kind(message, **where)))
        assert type(found) is kind
        assert str(found).split() == str(kind(message, **where)).split()
        assert type(pickle.loads(pickle.dumps(found))) is kind


def test_where_is_parsed():
    where = {"file": "/data/it's.parquet", "row_group": 3, "column": "a", "page": 2}
    found = parse_parquet_error(raised(errors.CorruptPageError("damaged", **where)))
    assert found.where == where
    assert found.message == "damaged"


@pytest.mark.parametrize("after", ["\n\tat org.apache.spark.X(X.scala:3)\n\tat java.Y\nCaused by: z", "\n"])
def test_java_stack_trace_is_dropped(after):
    found = parse_parquet_error(raised(errors.SchemaError("no", column="a"), "[X] ", after))
    assert found.where == {"column": "a"}
    assert found.message == "no"


def test_notes_survive():
    error = errors.CorruptPageError("damaged", column="a")
    error.add_note("and a note")
    found = parse_parquet_error(raised(error))
    assert found.where == {"column": "a"}
    assert found.__notes__ == ["and a note"]


@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError("java.lang.OutOfMemoryError"),
        RuntimeError("numparq.errors.SchemaError: said, not raised"),
        raised(ValueError("numparq.errors.SchemaError: in a message")),
        raised(ValueError("x\nnumparq.errors.SchemaError: in the second line")),
        KeyError("x"),
        errors.SchemaError("is one itself"),
    ],
)
def test_other_errors_are_unchanged(failure):
    assert parse_parquet_error(failure) is None
    with pytest.raises(type(failure)) as caught, raise_worker_errors():
        raise failure
    assert caught.value is failure


def test_user_error_caused_by_ours_is_unchanged():
    try:
        try:
            raise errors.SchemaError("ours")
        except errors.SchemaError as error:
            raise ValueError("the user's") from error
    except ValueError:
        text = traceback.format_exc()
    assert parse_parquet_error(RuntimeError(text)) is None


def test_worker_error_has_spark_error_as_cause():
    failure = raised(errors.LimitError("too large", file="/a"))
    with pytest.raises(errors.LimitError, match="too large") as caught, raise_worker_errors():
        raise failure
    assert caught.value.__cause__ is failure


def fail(error):
    try:
        raise KeyError("before")
    except KeyError as before:
        raise error from before


ERRORS = [errors.SchemaError("no such column", column="x"), FileNotFoundError(2, "gone", "/a")]


@pytest.mark.parametrize("error", ERRORS)
def test_text_of_an_error_begins_with_its_sentence(error, monkeypatch):
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")
    monkeypatch.setenv("PYTHON_WORKER_FACTORY_PORT", "1")
    sentence = str(error)
    with pytest.raises(type(error)) as raised, sentence_first():
        fail(error)
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"
    text = "".join(traceback.format_exception_only(raised.value))  # as PySpark does
    assert text.partition("\n")[0].removeprefix("numparq.errors.") == f"{type(error).__name__}: {sentence}"
    assert "KeyError: 'before'" in text
    parsed = parse_parquet_error(Exception(f"Failed to create Python data source numparq: {text}"))
    if isinstance(error, errors.ParquetError):
        assert (type(parsed), str(parsed), parsed.where) == (type(error), sentence, error.where)


def test_other_errors_pass_unchanged(monkeypatch):
    monkeypatch.delenv("SPARK_HIDE_TRACEBACK", raising=False)
    with pytest.raises(ValueError, match=r"^outside of workers$"), sentence_first():
        raise ValueError("outside of workers")
    monkeypatch.setenv("PYTHON_WORKER_FACTORY_PORT", "1")
    with pytest.raises(KeyboardInterrupt), sentence_first():
        raise KeyboardInterrupt
    assert "SPARK_HIDE_TRACEBACK" not in os.environ
