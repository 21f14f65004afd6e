"""pyarrow as a reader of encrypted files: key material that holds the keys themselves, and a KMS that knows nothing."""

from __future__ import annotations

import base64
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe


class _OpenKms(pe.KmsClient):
    """Unwraps a key from its base64 text."""

    def wrap_key(self, key_bytes, master_key_identifier):
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return base64.b64decode(wrapped_key)


def key_material(key: bytes, *, is_footer_key: bool = False) -> bytes:
    """Return key metadata from which pyarrow takes a key."""
    material = {
        "keyMaterialType": "PKMT1",
        "internalStorage": True,
        "isFooterKey": is_footer_key,
        "masterKeyID": "m",
        "wrappedDEK": base64.b64encode(key).decode(),
        "doubleWrapping": False,
    }
    instance = {"kmsInstanceID": "DEFAULT", "kmsInstanceURL": "DEFAULT"} if is_footer_key else {}
    return json.dumps(material | instance).encode()


def open_with_pyarrow(data: bytes) -> pq.ParquetFile:
    """Open an encrypted file whose key metadata is that of `key_material`."""
    factory = pe.CryptoFactory(lambda _: _OpenKms())
    properties = factory.file_decryption_properties(pe.KmsConnectionConfig(), pe.DecryptionConfiguration())
    return pq.ParquetFile(io.BytesIO(data), decryption_properties=properties, page_checksum_verification=True)


def read_with_pyarrow(data: bytes) -> pa.Table:
    """Read an encrypted file whose key metadata is that of `key_material`."""
    return open_with_pyarrow(data).read()
