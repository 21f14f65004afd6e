"""Rotation of master keys: key material next to data files, unwrapped and wrapped again; the data files stay."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from numparq.dataset.discover.files import list_files
from numparq.dataset.listing.files import DataFile
from numparq.errors import DecryptionError, InvalidFileError, UnsupportedError, error_context
from numparq.format.footer.read_encryption import read_encryption
from numparq.format.footer.tail import buffer_tail, read_footer
from numparq.io.open import open_sink, open_source
from numparq.io.sibling_bytes import base_name, read_small_file, real_path, sibling_path
from numparq.keys.client import KmsClient, check_client
from numparq.keys.key_material import KeyReference, parse_key_material, parse_key_metadata
from numparq.keys.material_file import encode_material_file, material_name, parse_material_file
from numparq.keys.wrapping import Unwrapper, Wrapper
from numparq.typing import FileSystem, PathLike, StorageOptions
from numparq.util.arguments import check_flag

_LIFETIME = 600.0  # seconds for which a key encryption key is used
_INTERNAL = (
    "the wrapped keys are inside the file and cannot be replaced; write it again, or write files with "
    "internal_key_material=False"
)


def rotate_master_keys(
    path: PathLike,
    client: KmsClient,
    *,
    double_wrapping: bool = True,
    storage_options: StorageOptions = None,
    filesystem: FileSystem = None,
) -> int:
    """Wrap the keys of files again, by the current versions of their master keys.

    The key management system (KMS) unwraps each key by the old version of its master key, and wraps it by the new one.
    Each file of key material is replaced in one step; data files are not touched, and can be read all the time.

    Parameters
    ----------
    path : str or os.PathLike
        A file, or a directory, whose files are those that `read_parquet` reads.
    client : KmsClient
        Client of the KMS, which knows both versions of the master keys.
    double_wrapping : bool, default True
        As in `KmsEncryption`.
    storage_options, filesystem
        As in `read_parquet`.

    Returns
    -------
    int
        Number of files whose keys were wrapped again. Files without key material of a KMS are left alone.

    Raises
    ------
    UnsupportedError
        If a file keeps its key material inside; then nothing is changed.
    DecryptionError
        If key material is missing or damaged, or the KMS refuses. Files that were done before stay so.
    """
    check_client(client)
    check_flag(double_wrapping, "double_wrapping")
    listing = list_files(path, partitioning=None, storage_options=storage_options, filesystem=filesystem)
    unwrapper, wrapper = Unwrapper(client, _LIFETIME), Wrapper(client, _LIFETIME, double_wrapping)
    files = [file for file in listing.files if _has_stored_material(file, listing.filesystem)]
    paths = [file.committed_path(listing.filesystem is None) for file in files]
    for data_path in paths:
        with error_context(file=data_path):
            _rotate(data_path, unwrapper, wrapper, listing.filesystem)
    return len(paths)


def _has_stored_material(file: DataFile, filesystem: FileSystem) -> bool:
    """Whether the key material of a file is next to it; UnsupportedError if it is inside."""
    with error_context(file=file.name):
        materials = [parse_key_metadata(each) for each in _key_metadata(file, filesystem)]
        if any(material is not None and not isinstance(material, KeyReference) for material in materials):
            raise UnsupportedError(_INTERNAL)
        return any(material is not None for material in materials)


def _key_metadata(file: DataFile, filesystem: FileSystem) -> Iterator[bytes]:
    """Yield the key metadata of a file, as far as they are known without keys."""
    source = buffer_tail(open_source(file.path, None, filesystem))
    try:
        try:
            footer = read_footer(source)[0]
        except DecryptionError:
            footer = None
        encryption = read_encryption(source, footer)
        if encryption is not None:
            metadata = [encryption.footer_key_metadata, *(each.key_metadata for each in encryption.columns.values())]
            yield from (each for each in metadata if each is not None)
    finally:
        source.close()


def _rotate(path: str, unwrapper: Unwrapper, wrapper: Wrapper, filesystem: FileSystem) -> None:
    """Replace the file of key material of a data file."""
    material_path, stored = _find_material(path, filesystem)
    entries = {}
    for name, text in parse_material_file(stored).items():
        material = parse_key_material(text)
        key = unwrapper.unwrap(material)
        entries[name] = wrapper.wrap(key, material.master_key_id, material.is_footer_key).to_json(is_internal=False)
    if filesystem is None:
        with suppress(
            FileNotFoundError
        ):  # a checksum of Hadoop's local file system, by which it would refuse new content
            os.unlink(sibling_path(material_path, f".{base_name(material_path)}.crc"))
    with open_sink(material_path, filesystem=filesystem) as sink:
        sink.write(encode_material_file(entries))
        if read_small_file(material_path, None, filesystem) != stored:
            raise InvalidFileError("the key material was replaced meanwhile; rotate again")


def _find_material(path: str, filesystem: FileSystem) -> tuple[str, bytes]:
    """Return path and content of the file of key material, next to a data file or to the one that a link leads to."""
    paths = [path, real_path(path)] if filesystem is None and os.path.islink(path) else [path]
    for data_path in paths:
        material_path = sibling_path(data_path, material_name(data_path))
        try:
            return material_path, read_small_file(material_path, None, filesystem)
        except FileNotFoundError:
            continue
    raise DecryptionError(f"the file with the key material, {material_name(path)!r}, is missing")
