"""Files of key material next to data files: `_KEY_MATERIAL_FOR_<file name>.json`, a map of names to key material."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from numparq.errors import DecryptionError, ParquetError
from numparq.io.sibling_bytes import base_name

PREFIX, SUFFIX = "_KEY_MATERIAL_FOR_", ".json"
FOOTER_KEY = "footerKey"


def material_name(path: str) -> str:
    """Return the name of the file with the key material of a data file."""
    return f"{PREFIX}{base_name(path)}{SUFFIX}"


def read_material_file(path: str, read_sibling: Callable[[str], bytes]) -> dict[str, str]:
    """Return the entries of the file with the key material of a data file."""
    name = material_name(path)
    try:
        return parse_material_file(read_sibling(name))
    except FileNotFoundError:
        raise DecryptionError(
            f"the file with the key material, {name!r}, is missing: it belongs into the folder of the data file"
        ) from None
    except ParquetError as error:
        error.message = f"the file with the key material, {name!r}, cannot be read: {error.message}"
        raise


def parse_material_file(data: bytes) -> dict[str, str]:
    """Return the entries of a file of key material; DecryptionError if it is damaged."""
    try:
        entries = json.loads(data)
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, dict) or not all(isinstance(text, str) for text in entries.values()):
        raise DecryptionError("it is no JSON object of texts")
    return entries


def encode_material_file(entries: Mapping[str, str]) -> bytes:
    """Return the bytes of a file of key material."""
    return json.dumps(entries, separators=(",", ":")).encode()
