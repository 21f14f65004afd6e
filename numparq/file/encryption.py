"""Encryption of written files: what of a call cannot be encrypted, and the sealers of one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from numparq.errors import ParquetError, UnsupportedError
from numparq.format.schema import Leaf
from numparq.io.sink import Sink
from numparq.keys.provider import as_encryption_keys
from numparq.typing import EncryptionKeys

from .writer_options import WriterOptions

if TYPE_CHECKING:
    from numparq.format.file_encryption import FileEncryption


def check_encryption(
    encryption: EncryptionKeys | str | None, append: bool, checkpoint_row_groups: int | None
) -> EncryptionKeys | None:
    """Return the keys that `encryption` gives, and check options that it excludes."""
    if encryption is None:
        return None
    if append:
        raise UnsupportedError("append=True cannot extend a file with encrypted row groups; write a new file")
    if checkpoint_row_groups is not None:
        raise UnsupportedError(
            "checkpoint_row_groups cannot be used with encryption: the footer of a checkpoint would authenticate a "
            "file that was cut off; leave it out"
        )
    return as_encryption_keys(encryption)


def encoding_options(options: WriterOptions) -> WriterOptions:
    """Return options of pages without checksums, which are those of the stored bytes: sealing adds them."""
    return replace(options, write_page_checksum=False)


def begin_encryption(
    encryption: EncryptionKeys, leaves: Sequence[Leaf], options: WriterOptions, sink: Sink
) -> FileEncryption:
    """Return the sealers of one file, which has an AAD of its own; key material outside it is committed with it."""
    from numparq.format.file_encryption import FileEncryption
    from numparq.keys.material_file import material_names, store_material

    paths = [leaf.path for leaf in leaves]
    keys = encryption.file_keys(paths, material_names(sink))
    if keys.material is not None:
        store_material(sink, keys.material)
    return FileEncryption(keys, paths, bool(options.write_page_checksum))


def hide_values(error: ParquetError, encryption: EncryptionKeys | None) -> None:
    """Replace the message of an error that may quote values of an encrypted column, and drop its causes."""
    if encryption is None or isinstance(error, UnsupportedError):
        return
    column = error.where.get("column")
    if column is not None and encryption.may_encrypt(str(column)):
        error.message = "a value cannot be stored as the type of its column; values of encrypted columns are not shown"
        error.args = (error.message,)
        error.__cause__ = error.__context__ = None
