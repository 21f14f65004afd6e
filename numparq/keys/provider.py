"""Keys by the name of a provider, ``package.module:attribute``: the name travels to other processes, keys never do."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from numparq.errors import DecryptionError, ParquetError
from numparq.util.bounded_cache import fork_safe_lru_cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from numparq.crypto.key import KeySource
    from numparq.typing import EncryptionKeys

_IDENTIFIER = r"[^\W\d]\w*"
_DOTTED = rf"{_IDENTIFIER}(?:\.{_IDENTIFIER})*"
_NAME = re.compile(rf"({_DOTTED}):({_DOTTED})")
_MAX_PROVIDERS = 64


class _Argument(NamedTuple):
    """Argument that takes keys: its name, a method that its objects have, and their class."""

    name: str
    method: str
    example: str


_DECRYPTION = _Argument("decryption", "column_key", "numparq.Decryption")
_ENCRYPTION = _Argument("encryption", "file_keys", "numparq.Encryption")


class NamedKeys:
    """Keys of a provider, resolved in each process that uses them; it can be pickled and copied.

    Parameters
    ----------
    name : str
        Name of the provider.
    argument : _Argument
        Argument that the keys are for.

    Attributes
    ----------
    name
        The parameter.
    are_named : bool
        True (`numparq.crypto.key.check_named`).
    """

    __slots__ = ("_argument", "name")
    are_named = True

    def __init__(self, name: str, argument: _Argument) -> None:
        self.name, self._argument = name, argument

    def __getattr__(self, attribute: str) -> object:
        if attribute.startswith("__"):  # of Python's own protocols
            raise AttributeError(attribute)
        keys = getattr(_provided_keys(self.name, self._argument), attribute)
        return (lambda: NamedReadingKeys(self.name)) if attribute == "as_decryption" else keys

    def __repr__(self) -> str:
        return f"NamedKeys({self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return NamedKeys, (self.name, self._argument)


class NamedReadingKeys:
    """Keys for reading of a provider that gives keys for writing; it can be pickled and copied.

    Parameters
    ----------
    name : str
        Name of the provider.

    Attributes
    ----------
    name
        The parameter.
    are_named : bool
        True (`numparq.crypto.key.check_named`).
    """

    __slots__ = ("name",)
    are_named = True

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> object:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return getattr(_reading_keys(self.name), attribute)

    def __repr__(self) -> str:
        return f"NamedReadingKeys({self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return NamedReadingKeys, (self.name,)


def as_key_source(decryption: KeySource | str | None) -> KeySource | None:
    """Return the keys that an argument `decryption` gives: an object, or the name of its provider.

    Raises TypeError for other objects, and for a name what `check_provider_name` and the provider raise.
    """
    return cast("KeySource | None", _keys_of(decryption, _DECRYPTION))


def as_encryption_keys(encryption: EncryptionKeys | str | None) -> EncryptionKeys | None:
    """Return the keys that an argument `encryption` gives; as `as_key_source`."""
    return cast("EncryptionKeys | None", _keys_of(encryption, _ENCRYPTION))


def check_provider_name(name: object, argument: str) -> str:
    """Return the name of a provider; raise TypeError for an object with keys, ValueError for a malformed name."""
    if not isinstance(name, str):
        raise TypeError(
            f"{argument} must be the name of a key provider here, as keys do not travel to other processes: "
            f"{argument}='package.module:attribute', not {_described(name)}"
        )
    if not _NAME.fullmatch(name):
        raise ValueError(f"{argument} must be the name of a key provider, 'package.module:attribute'")  # no quoted key
    return name


def _keys_of(keys: object, argument: _Argument) -> object:
    if isinstance(keys, str):
        _provided_keys(check_provider_name(keys, argument.name), argument)  # raises before any file is opened
        return NamedKeys(keys, argument)
    if keys is not None and (isinstance(keys, type) or not hasattr(keys, argument.method)):
        raise TypeError(
            f"{argument.name} must be a {argument.example}, the name of a key provider, or None, not {_described(keys)}"
        )
    return keys


@fork_safe_lru_cache(_MAX_PROVIDERS)
def _provided_keys(name: str, argument: _Argument) -> object:
    """Return the keys of a provider, which is imported and called once in each process."""
    provided = _find_provider(name)
    if isinstance(provided, type) or not hasattr(provided, argument.method):
        provided = _without_secrets(name, provided) if callable(provided) else provided
    if isinstance(provided, type) or not hasattr(provided, argument.method):
        raise TypeError(
            f"the key provider {name!r} must be, or return, a {argument.example} for {argument.name}=, "
            f"not {_described(provided)}"
        )
    return provided


@fork_safe_lru_cache(_MAX_PROVIDERS)
def _reading_keys(name: str) -> object:
    """Return the keys for reading of a provider that gives keys for writing."""
    return cast("Any", _provided_keys(name, _ENCRYPTION)).as_decryption()


def _find_provider(name: str) -> object:
    module_name, attributes = name.split(":")
    try:
        provided: object = _without_secrets(name, lambda: importlib.import_module(module_name))
        for attribute in attributes.split("."):
            provided = getattr(provided, attribute)
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"the key provider {name!r} was not found: {error}; its module must be importable in every process that "
            "opens files, such as Spark's driver and workers: install it, or put it on PYTHONPATH",
            name=module_name,
        ) from error
    return provided


def _without_secrets(name: str, call: Callable[[], object]) -> object:
    """Call what a provider defines; its exceptions may quote secrets and are not repeated in messages."""
    try:
        return call()
    except (ImportError, ParquetError):
        raise
    except Exception as error:
        raise DecryptionError(f"the key provider {name!r} failed: {type(error).__name__}") from error


def _described(keys: object) -> str:
    """Return the class of an object for a message, never its text, which may show a key."""
    return f"the class {keys.__name__}" if isinstance(keys, type) else type(keys).__name__
