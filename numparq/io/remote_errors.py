"""Errors of remote file systems: the cause, as a builtin exception that names the status and the file.

fsspec's HTTP file system reports each failed look-up as a missing file, and errors of HTTP clients are no OSErrors.
Causes are recognised by their attributes, so that no client library is imported.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from numparq.errors import ParquetError

_FAILED = getattr(errno, "EREMOTEIO", errno.EIO)
# HTTP statuses with an errno of their own, and so with an exception type of their own.
_ERRNO_OF_STATUS = {
    HTTPStatus.UNAUTHORIZED: errno.EACCES,
    HTTPStatus.FORBIDDEN: errno.EACCES,
    HTTPStatus.NOT_FOUND: errno.ENOENT,
    HTTPStatus.GONE: errno.ENOENT,
    HTTPStatus.REQUEST_TIMEOUT: errno.ETIMEDOUT,
    HTTPStatus.GATEWAY_TIMEOUT: errno.ETIMEDOUT,
}
# Errnos of a failed connection.
_NO_CONNECTION = {
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.ECONNABORTED,
    errno.EPIPE,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.ETIMEDOUT,
}
# Words in the class names of connection errors that are no OSErrors, such as those of aiohttp, botocore and azure.
_CONNECTION_NAMES = ("Connection", "Disconnected", "ClientPayloadError", "ServiceRequest", "ServiceResponse")
_MAX_CAUSES = 8


@contextmanager
def explain_remote_errors(name: str) -> Iterator[None]:
    """Replace errors of a file system by their cause, with the HTTP status and the file's name."""
    try:
        yield
    except ParquetError:
        raise
    except Exception as error:
        explained = explain_remote_error(error, name)
        if explained is error:
            raise
        raise explained from error


def explain_remote_error(error: Exception, name: str) -> Exception:
    """Return the OSError that says why a request failed; the error itself if nothing better is known."""
    chain = list(causes(error))
    for cause in chain:
        status = http_status(cause)
        if status is not None:
            return _error_of_status(status, name)
    for explain in (_system_error, _client_error):
        for cause in chain:
            explained = explain(cause, name)
            if explained is not None:
                return explained
    if isinstance(error, FileNotFoundError) and error.errno is None:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if isinstance(error, PermissionError) and error.errno is None:
        return PermissionError(errno.EACCES, str(error) or os.strerror(errno.EACCES), name)
    return error


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what caused it; aiohttp keeps the system's error in an attribute."""
    current: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if current is None:
            return
        yield current
        inner = getattr(current, "os_error", None)
        if isinstance(inner, OSError) and inner is not current:
            yield inner
        current = current.__cause__


def http_status(error: BaseException) -> int | None:
    """Return the HTTP status of an error of aiohttp, botocore, gcsfs, azure, requests or urllib; None for others."""
    response = getattr(error, "response", None)
    metadata = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    found: list[Any] = [metadata.get("HTTPStatusCode")] if isinstance(metadata, Mapping) else []
    owners = ((error, "status"), (error, "status_code"), (response, "status_code"), (error, "code"))
    for owner, key in owners:
        found += [] if found else [value for value in (getattr(owner, key, None),) if value is not None]
    status = found[0] if found else None
    if isinstance(status, str) and status.isdecimal() and len(status) == 3:
        status = int(status)
    return int(status) if isinstance(status, int) and 400 <= status <= 599 else None


def _error_of_status(status: int, name: str) -> OSError:
    try:
        phrase = f" {HTTPStatus(status).phrase}"
    except ValueError:  # a server's own
        phrase = ""
    return OSError(_ERRNO_OF_STATUS.get(status, _FAILED), f"HTTP {status}{phrase}", name)  # type: ignore[call-overload]


def _system_error(error: BaseException, name: str) -> OSError | None:
    """Return the error for a host that is unknown, or a connection that the system reports as failed."""
    if isinstance(error, socket.gaierror):
        return ConnectionError(errno.EHOSTUNREACH, f"the host is unknown ({error.strerror or error})", name)
    if isinstance(error, OSError) and error.errno in _NO_CONNECTION:
        return OSError(error.errno, os.strerror(error.errno), name)
    return None


def _client_error(error: BaseException, name: str) -> OSError | None:
    """Return the error for a timeout or lost connection that a client library reports in its own way."""
    kinds = [cls.__name__ for cls in type(error).__mro__]
    if isinstance(error, TimeoutError) or any("Timeout" in kind for kind in kinds):
        return TimeoutError(errno.ETIMEDOUT, str(error) or "the server did not answer in time", name)
    if any(word in kind for kind in kinds for word in _CONNECTION_NAMES):
        return ConnectionError(_FAILED, str(error) or type(error).__name__, name)
    return None
