"""Errors of remote file systems are explained by attributes of their causes."""

from __future__ import annotations

import errno
import socket

import pytest

from numparq import InvalidFileError
from numparq.io.remote_errors import explain_remote_error, explain_remote_errors, http_status


class ClientError(Exception):
    """As botocore's."""

    def __init__(self, status: int) -> None:
        super().__init__("An error occurred")
        self.response = {"Error": {"Code": "SlowDown"}, "ResponseMetadata": {"HTTPStatusCode": status}}


class HttpError(Exception):
    """As gcsfs'."""

    def __init__(self, code: object) -> None:
        super().__init__(f"{code}, Forbidden")
        self.code = code


class HttpResponseError(Exception):
    """As azure's."""

    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


class RequestsError(OSError):
    """As requests'."""

    def __init__(self, status: int) -> None:
        self.response = HttpResponseError(status)


class EndpointConnectionError(Exception):
    """As botocore's."""


class ServerTimeoutError(Exception):
    """As aiohttp's."""


def with_cause(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ClientError(403), PermissionError, "HTTP 403 Forbidden: 's3://b/x'"),
        (ClientError(503), OSError, "HTTP 503 Service Unavailable: 's3://b/x'"),
        (ClientError(404), FileNotFoundError, "HTTP 404 Not Found: 's3://b/x'"),
        (HttpError(401), PermissionError, "HTTP 401 Unauthorized"),
        (HttpError("403"), PermissionError, "HTTP 403 Forbidden"),
        (HttpResponseError(500), OSError, "HTTP 500 Internal Server Error"),
        (RequestsError(410), FileNotFoundError, "HTTP 410 Gone"),
        (RequestsError(408), TimeoutError, "HTTP 408 Request Timeout"),
        (with_cause(FileNotFoundError("x"), ClientError(403)), PermissionError, "HTTP 403 Forbidden"),
        (with_cause(OSError("x"), with_cause(ValueError("y"), HttpError(429))), OSError, "HTTP 429 Too Many Requests"),
        (with_cause(FileNotFoundError("x"), socket.gaierror(-2, "no name")), ConnectionError, "unknown (no name)"),
        (with_cause(OSError("x"), ConnectionRefusedError(errno.ECONNREFUSED, "no")), ConnectionRefusedError, "refused"),
        (EndpointConnectionError("could not connect"), ConnectionError, "could not connect: 's3://b/x'"),
        (ServerTimeoutError(), TimeoutError, "did not answer in time: 's3://b/x'"),
        (TimeoutError(), TimeoutError, "did not answer in time: 's3://b/x'"),
        (FileNotFoundError("x"), FileNotFoundError, "No such file or directory: 's3://b/x'"),
        (PermissionError("Access Denied"), PermissionError, "Access Denied: 's3://b/x'"),
    ],
)  # fmt: skip
def test_cause_is_said(error, kind, message):
    explained = explain_remote_error(error, "s3://b/x")
    assert isinstance(explained, kind)
    assert message in str(explained)
    assert isinstance(explained, FileNotFoundError) == (kind is FileNotFoundError)
    with pytest.raises(kind, match="s3://b/x") as raised, explain_remote_errors("s3://b/x"):
        raise error
    assert raised.value.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        KeyError("x"),
        OSError("disk"),
        HttpError(200),
        HttpError(None),
        HttpError("SlowDown"),
        FileNotFoundError(errno.ENOENT, "gone", "y"),
        InvalidFileError("damaged"),
    ],
)
def test_other_errors_stay(error):
    assert http_status(error) is None
    with pytest.raises(type(error)) as raised, explain_remote_errors("s3://b/x"):
        raise error
    assert raised.value is error


def test_causes_that_form_a_circle():
    one, other = ValueError("a"), ValueError("b")
    one.__cause__, other.__cause__ = other, one
    assert explain_remote_error(one, "x") is one


@pytest.mark.parametrize("where", ["info", "read", "read many", "list", "write", "delete"])
def test_every_request_is_explained(where):
    pytest.importorskip("fsspec")
    import numpy as np
    import pandas as pd

    import numparq
    from support.io.remote_datasets import object_store

    store = object_store()
    frame = pd.DataFrame({"a": np.random.default_rng(1).random(100_000)})
    numparq.to_parquet(frame, "/d/x.parquet", filesystem=store, row_group_size=10_000)

    def fail(*arguments, **options):
        raise ClientError(403)

    file = numparq.ParquetFile("/d/x.parquet", filesystem=store)
    names = {"info": ["info"], "read": ["_answer"], "read many": ["cat_ranges"], "list": ["find"], "write": ["_open"]}
    for name in names.get(where, ["rm_file"]):
        setattr(store, name, fail)
    steps = {
        "info": lambda: numparq.read_parquet("/d/x.parquet", filesystem=store),
        "read": lambda: numparq.read_parquet("/d/x.parquet", filesystem=store),
        "read many": file.read,
        "list": lambda: numparq.read_parquet("/d", filesystem=store),
        "write": lambda: numparq.to_parquet(frame, "/d/y.parquet", filesystem=store),
        "delete": lambda: numparq.to_parquet(
            frame, "/d", partition_cols=[], existing_data_behavior="delete_matching", filesystem=store
        ),
    }
    with pytest.raises(PermissionError, match="HTTP 403 Forbidden"):
        steps[where]()
