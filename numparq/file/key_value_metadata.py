"""The `key_value_metadata` argument of a writer: keys and values of the footer, which are text."""

from __future__ import annotations

from collections.abc import Mapping

from numparq.util.text import is_utf8


def check_key_values(metadata: object) -> dict[str, str | bytes]:
    """Check the `key_value_metadata` argument, and return a copy."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise TypeError(f"key_value_metadata must be a dict of str to str or bytes, not {metadata!r}")
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, (str, bytes)):
            raise TypeError(f"key_value_metadata must be a dict of str to str or bytes, but has {key!r}: {value!r}")
        for part in (key, value):
            if not is_utf8(part):
                raise ValueError(
                    f"key_value_metadata has {part[:40]!r} in {key!r}, which is not UTF-8, as Parquet requires; "
                    "encode it as text, such as base64"
                )
    return dict(metadata)
