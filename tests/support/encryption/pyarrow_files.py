"""Encrypted files written by pyarrow, with column keys that a reader can be given directly."""

from __future__ import annotations

import base64
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

from numparq.format.open_file import OpenFile

from .keys import DirectKeys


class _FixedKms(pe.KmsClient):
    """Wraps a key by its base64 text; the tests take the data keys from the key material."""

    def __init__(self) -> None:
        super().__init__()

    def wrap_key(self, key_bytes, master_key_identifier):
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return base64.b64decode(wrapped_key)


class MaterialKeys(DirectKeys):
    """A KeySource that finds data keys in key material that is not wrapped; of columns only those named."""

    def __init__(self, columns=None, **options) -> None:
        super().__init__(bytes([1] * 16), **options)
        self._columns = None if columns is None else {*columns}

    def footer_key(self, key_metadata):
        return _key_of(key_metadata)

    def column_key(self, path, key_metadata):
        return _key_of(key_metadata) if self._columns is None or path[0] in self._columns else None


def _key_of(key_metadata):
    import json

    from numparq.crypto.key import Key

    return Key(base64.b64decode(json.loads(key_metadata)["wrappedDEK"]))


def encrypt(
    table: pa.Table,
    columns: list[str] | None,
    *,
    algorithm: str = "AES_GCM_V1",
    plaintext_footer: bool = False,
    key_bits: int = 128,
    **options,
) -> bytes:
    """Return a file written by pyarrow; columns None: all under the footer key."""
    config = pe.EncryptionConfiguration(
        footer_key="kf",
        column_keys={"kc": columns} if columns else {},
        uniform_encryption=columns is None,
        encryption_algorithm=algorithm,
        plaintext_footer=plaintext_footer,
        double_wrapping=False,
        data_key_length_bits=key_bits,
    )
    factory = pe.CryptoFactory(lambda _: _FixedKms())
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), config)
    sink = io.BytesIO()
    pq.write_table(table, sink, encryption_properties=properties, **options)
    return sink.getvalue()


def open_encrypted(content: bytes, keys: DirectKeys) -> OpenFile:
    """Open the file that `encrypt` returned."""
    return OpenFile(content, decryption=keys)
