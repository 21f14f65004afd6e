"""Clients of a key management system (KMS): what they do, and calls whose errors show no keys."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from numparq.crypto.key import Key
from numparq.errors import DecryptionError, ParquetError

_Result = TypeVar("_Result")


class KmsClient(Protocol):
    """Client of a key management system, which wraps and unwraps keys by master keys that never leave it.

    Any object with these methods will do, one of pyarrow's as well. Each is called once for a key, by any thread.

    Examples
    --------
    >>> class Kms:
    ...     def wrap_key(self, key, master_key_id):
    ...         return my_kms.encrypt(master_key_id, key)
    ...
    ...     def unwrap_key(self, wrapped_key, master_key_id):
    ...         return my_kms.decrypt(master_key_id, wrapped_key)
    """

    def wrap_key(self, key: bytes, master_key_id: str) -> str:
        """Return a key, encrypted by a master key, as text.

        Parameters
        ----------
        key : bytes
            Key of a column, of a footer, or of other keys.
        master_key_id : str
            Name of the master key.

        Returns
        -------
        str
        """

    def unwrap_key(self, wrapped_key: str, master_key_id: str) -> bytes:
        """Return the key that `wrap_key` encrypted.

        Parameters
        ----------
        wrapped_key : str
            What `wrap_key` returned.
        master_key_id : str
            Name of the master key.

        Returns
        -------
        bytes
        """


def check_client(client: object) -> None:
    """Raise TypeError unless an object wraps and unwraps keys."""
    if isinstance(client, type) or not all(callable(getattr(client, name, None)) for name in _METHODS):
        kind = client.__name__ if isinstance(client, type) else f"a {type(client).__name__}"
        raise TypeError(f"client must have the methods wrap_key and unwrap_key, and {kind} has not: see KmsClient")


_METHODS = ("wrap_key", "unwrap_key")


def describe_client(client: object) -> str:
    """Return the text of a client for a `repr`: of others than numparq's the class alone, which shows no token."""
    kind = type(client)
    return repr(client) if kind.__module__.startswith("numparq.") else f"<{kind.__qualname__}>"


def wrap_key(client: KmsClient, key: bytes, master_key_id: str) -> str:
    """Return a key wrapped by a master key."""
    wrapped: object = _call(lambda: client.wrap_key(key, master_key_id), "wrap", master_key_id, key)
    try:
        text = bytes(wrapped).decode() if isinstance(wrapped, (bytes, bytearray, memoryview)) else wrapped
    except UnicodeDecodeError:
        text = None
    if not isinstance(text, str):
        raise DecryptionError(f"wrap_key of the KMS client returned a {type(wrapped).__name__} that is no text")
    return text


def unwrap_key(client: KmsClient, wrapped: str, master_key_id: str) -> Key:
    """Return the key that a master key wraps."""
    value: object = _call(lambda: client.unwrap_key(wrapped, master_key_id), "unwrap", master_key_id, b"")
    if not isinstance(value, (bytes, bytearray)):
        raise DecryptionError(f"unwrap_key of the KMS client returned a {type(value).__name__}, not bytes")
    try:
        return Key(bytes(value))
    except ValueError as error:
        raise DecryptionError(f"the key that master key {master_key_id!r} unwraps cannot be used: {error}") from None


def _call(call: Callable[[], _Result], verb: str, master_key_id: str, key: bytes) -> _Result:
    """Return a client's answer; its error is the cause of a DecryptionError, unless it quotes the key."""
    try:
        return call()
    except ParquetError:
        raise
    except Exception as error:
        name, cause = type(error).__name__, None if _quotes(error, key) else error
    # Here, so that an error which quotes the key is not the context of the new one.
    raise DecryptionError(f"the KMS client could not {verb} a key by master key {master_key_id!r}: {name}") from cause


def _quotes(error: BaseException, key: bytes) -> bool:
    """Whether an error, or one that it came from, quotes a key in any of the usual forms."""
    forms = [key.hex(), base64.b64encode(key).decode().rstrip("="), repr(key)[2:-1], repr([*key])[1:-1]]
    texts = [f"{each!r} {each} {getattr(each, '__dict__', '')}" for each in _chain(error)]
    return bool(key) and any(form.lower() in text.lower() for form in forms for text in texts)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it came from."""
    seen: list[BaseException] = []
    left = [error]
    while left:
        each = left.pop()
        if each is not None and each not in seen:
            seen.append(each)
            yield each
            left += [each.__cause__, each.__context__]
