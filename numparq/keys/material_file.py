"""Files of key material next to data files: `_KEY_MATERIAL_FOR_<file name>.json`, a map of names to key material."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from numparq.errors import DecryptionError, ParquetError
from numparq.io.open import open_sink
from numparq.io.sibling_bytes import base_name, read_sibling, real_path, sibling_path

if TYPE_CHECKING:
    from numparq.io.sink import Sink

PREFIX, SUFFIX = "_KEY_MATERIAL_FOR_", ".json"
FOOTER_KEY = "footerKey"


def material_name(path: str) -> str:
    """Return the name of the file with the key material of a data file."""
    return f"{PREFIX}{base_name(path)}{SUFFIX}"


def key_material_path(path: str) -> str:
    """Return the path of the file with the key material of a data file."""
    return sibling_path(path, material_name(path))


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


def material_names(sink: Sink) -> Callable[[], Collection[str]] | None:
    """Return a function for the names that the file of key material has already; None if there can be no such file."""
    if sink.location is None and sink.create_sibling is None:
        return None
    return lambda: _stored_entries(sink).keys()


def store_material(sink: Sink, entries: Mapping[str, str]) -> None:
    """Add its key material to what a sink commits, so that no data file is ever without it.

    The key material of a file that is replaced stays until the new file has its name.
    """
    stored = _stored_entries(sink)
    sink.before = _write_entries(sink, {**stored, **entries})
    if stored:
        sink.after = _write_entries(sink, entries)


def _stored_entries(sink: Sink) -> dict[str, str]:
    """Return the key material of the file that a sink replaces; what cannot be read is of no use to it."""
    if sink.location is None:
        return {}
    path, storage_options, filesystem = sink.location
    try:
        return parse_material_file(read_sibling(path, storage_options, filesystem, material_name(path)))
    except (FileNotFoundError, ParquetError):
        return {}


def _write_entries(sink: Sink, entries: Mapping[str, str]) -> Sink:
    """Return a sink with a file of key material that is complete, but not committed."""
    if sink.location is None:
        assert sink.create_sibling is not None
        material = sink.create_sibling(material_name(sink.name))
    else:
        path, storage_options, filesystem = sink.location
        path = path if filesystem is not None else real_path(path)
        material = open_sink(sibling_path(path, material_name(path)), storage_options, filesystem)
    material.write(encode_material_file(entries))
    return material
