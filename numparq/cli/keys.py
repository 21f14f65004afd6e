"""Keys of the command line: files and providers, never a key itself."""

from __future__ import annotations

from typing import Any

from numparq.keys.key_file import KeyFile
from numparq.keys.provider import as_encryption_keys, as_key_source

# Argument of a command -> option for a file, option for a provider.
_DECRYPTION = ("key_file", "key_provider")
_ENCRYPTION = ("output_key_file", "output_key_provider")


def resolve_keys(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a command with the keys that they name, as `decryption` and `encryption`."""
    resolved = {name: value for name, value in options.items() if name not in (*_DECRYPTION, *_ENCRYPTION)}
    if _DECRYPTION[0] in options:
        path, provider = _one_of(options, *_DECRYPTION)
        resolved["decryption"] = KeyFile(path).decryption() if path else as_key_source(provider)
    elif _DECRYPTION[1] in options:  # Spark, where keys do not travel, but names do
        resolved["decryption"] = options[_DECRYPTION[1]]
    if _ENCRYPTION[0] in options:
        path, provider = _one_of(options, *_ENCRYPTION)
        resolved["encryption"] = KeyFile(path).encryption() if path else as_encryption_keys(provider)
    elif _ENCRYPTION[1] in options:
        resolved["encryption"] = options[_ENCRYPTION[1]]
    return resolved


def _one_of(options: dict[str, Any], file: str, provider: str) -> tuple[str | None, str | None]:
    if options[file] and options[provider]:
        flags = [f"--{name.replace('_', '-')}" for name in (file, provider)]
        raise ValueError(f"{flags[0]} and {flags[1]} exclude each other")
    return options[file], options[provider]
