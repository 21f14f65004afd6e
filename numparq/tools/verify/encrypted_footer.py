"""Open the footer of an encrypted file, or check the signature of a plaintext one (Encryption.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numparq.crypto.aad import ModuleId, ModuleType
from numparq.errors import DecryptionError
from numparq.format.encryption import footer_key
from numparq.format.encryption_metadata import EncryptionMetadata

from .deviations import Findings
from .modules import SIGNATURE_BYTES, FileModules, ModuleError, module_length
from .thrift import ThriftDecodeError, read_struct

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource

_IS_CTR = {"AES_GCM_V1": False, "AES_GCM_CTR_V1": True}


def read_crypto_metadata(data: bytes, findings: Findings) -> tuple[dict[str, Any], int] | None:
    """Read FileCryptoMetaData, with which an encrypted footer begins; return it and its end, None if it is damaged."""
    try:
        return read_struct("FileCryptoMetaData", data, findings.add)
    except ThriftDecodeError as error:
        findings.add("thrift-struct", f"FileCryptoMetaData cannot be read: {error}")
        return None


def describe_encryption(
    algorithm: dict[str, Any], key_metadata: bytes | None, has_encrypted_footer: bool
) -> EncryptionMetadata:
    """Return how a file is encrypted, without its columns."""
    name = next(iter(algorithm), "")
    settings = algorithm.get(name, {})
    prefix, needs_prefix = settings.get("aad_prefix"), settings.get("supply_aad_prefix", False)
    return EncryptionMetadata(has_encrypted_footer, name, key_metadata, prefix, prefix is None and needs_prefix)


def open_modules(algorithm: dict[str, Any], keys: KeySource | None, findings: Findings) -> FileModules | None:
    """Return the decryptor of a file; None, with a deviation, if the modules cannot be opened."""
    name = next(iter(algorithm), "")
    if keys is None:
        return None
    if name not in _IS_CTR:
        findings.add("not-checked", "the file is encrypted by an algorithm that numparq does not know")
        return None
    settings = algorithm[name]
    stored, supplied = settings.get("aad_prefix"), keys.aad_prefix
    if stored is None and supplied is None and settings.get("supply_aad_prefix"):
        findings.add("not-checked", "the AAD prefix is not stored in the file; pass aad_prefix=")
        return None
    if stored is not None and supplied is not None and stored != supplied:
        findings.add("aad-prefix", f"the file's AAD prefix is {stored!r}, not the one given")
    if stored is None and supplied is not None and not settings.get("supply_aad_prefix"):
        findings.add("aad-prefix", "an AAD prefix was given, but the file has none")
        supplied = None
    prefix = stored if stored is not None else supplied or b""
    return FileModules(keys, prefix + settings.get("aad_file_unique", b""), _IS_CTR[name])


def open_footer(module: bytes, modules: FileModules, key_metadata: bytes | None, findings: Findings) -> bytes | None:
    """Return FileMetaData as bytes; None, with a deviation, if its module cannot be opened."""
    try:
        key = footer_key(modules.keys, key_metadata)
        if module_length(module, len(module), 0) != len(module):
            raise ModuleError("module-length", "the footer's module does not fill the footer")
        return modules.open_gcm(key, module, ModuleId(ModuleType.FOOTER), -1 << 62)
    except DecryptionError as error:
        findings.add("not-checked", f"the footer is encrypted; not checked: {error.message}")
    except ModuleError as error:
        findings.add(error.check, error.message)
    return None


def check_signature(stored: bytes, modules: FileModules, key_metadata: bytes | None, findings: Findings) -> None:
    """Check the signature at the end of a plaintext footer, over the bytes as stored."""
    footer, signature = stored[:-SIGNATURE_BYTES], stored[-SIGNATURE_BYTES:]
    try:
        modules.check_signature(footer_key(modules.keys, key_metadata), footer, signature, -1 << 62)
    except DecryptionError as error:
        findings.add("not-checked", f"the signature of the footer is not checked: {error.message}")
    except ModuleError as error:
        findings.add(error.check, error.message)
