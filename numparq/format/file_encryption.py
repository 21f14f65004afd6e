"""Encryption of a file to write (Encryption.md): sealed column metadata, indexes, Bloom filters and footer."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from numparq.crypto.aad import MAX_ORDINAL, ModuleId, ModuleType
from numparq.crypto.key import Key
from numparq.crypto.part_prefix import PartPrefix
from numparq.crypto.seal import Sealer
from numparq.errors import UnsupportedError
from numparq.kernels.thrift import wire
from numparq.util.pluralize import pluralize

from .footer.tail import ENCRYPTED_MAGIC, MAGIC
from .thrift.encode import EncodedThrift, encode_field, encode_struct
from .thrift.walk import join_fields, skip_value, split_fields, split_list

_GEO = "geo"  # key of GeoParquet
_UNIQUE_BYTES = 8  # of aad_file_unique, as in other writers
# Field ids in FileMetaData, RowGroup and ColumnChunk.
_ALGORITHM, _SIGNING_KEY = 8, 9
_COLUMNS = 1
_META_DATA, _CRYPTO, _SEALED_META_DATA = 3, 8, 9
# Statistics, encoding_stats, bloom_filter_offset and _length, size_statistics, geospatial_statistics: they tell about
# values, or where sealed modules are, and a plaintext footer has them sealed only.
_STRIPPED = (12, 13, 14, 15, 16, 17)


class ModuleKey(NamedTuple):
    """Key of the footer, or of a leaf column, with the metadata by which readers find it."""

    key: Key
    key_metadata: bytes | None
    is_footer_key: bool


class FileKeys(NamedTuple):
    """Keys and modes of one file; a leaf column without a key stays plain."""

    algorithm: str
    plaintext_footer: bool
    aad_prefix: bytes | PartPrefix | None
    store_aad_prefix: bool
    footer: ModuleKey
    leaves: Sequence[ModuleKey | None]
    material: Mapping[str, str] | None = None  # to store in a file next to the data file


class FileEncryption:
    """Sealers of one file to write, by leaf column; threads share it.

    Attributes
    ----------
    sealers : list of (Sealer or None)
        Sealer of each leaf column; None: it stays plain.
    checksum : bool
        Whether pages get checksums.
    magic : bytes
        Magic number at both ends of the file.
    footer_digest : str or None
        SHA-256 of the footer as stored, once it is sealed.
    """

    footer_digest: str | None = None

    def __init__(self, keys: FileKeys, paths: Sequence[tuple[str, ...]], checksum: bool) -> None:
        if len(paths) > MAX_ORDINAL + 1:
            raise UnsupportedError(
                f"{pluralize(len(paths), 'leaf column')} cannot be encrypted, ordinals have 16 bits; "
                "write them to several files"
            )
        self._keys, self._paths, self.checksum = keys, paths, checksum
        unique = os.urandom(_UNIQUE_BYTES)
        if isinstance(keys.aad_prefix, PartPrefix):
            raise UnsupportedError(
                "aad_prefix=PartPrefix(...) is for datasets; for one file pass aad_prefix=PartPrefix(...).of(path)"
            )
        file_aad = (keys.aad_prefix or b"") + unique
        settings = {
            "aad_prefix": keys.aad_prefix if keys.store_aad_prefix else None,
            "aad_file_unique": unique,
            "supply_aad_prefix": (keys.aad_prefix is not None and not keys.store_aad_prefix) or None,
        }
        self._algorithm = EncodedThrift(encode_struct("EncryptionAlgorithm", {keys.algorithm: settings}))
        is_ctr = keys.algorithm == "AES_GCM_CTR_V1"
        self._footer = Sealer(keys.footer.key, file_aad, is_ctr)
        shared = {id(keys.footer.key): self._footer}
        self.sealers: list[Sealer | None] = []
        for leaf in keys.leaves:
            if leaf is not None and id(leaf.key) not in shared:
                shared[id(leaf.key)] = Sealer(leaf.key, file_aad, is_ctr)
            self.sealers.append(None if leaf is None else shared[id(leaf.key)])
        self.magic = MAGIC if keys.plaintext_footer else ENCRYPTED_MAGIC

    def __repr__(self) -> str:
        return "FileEncryption()"

    def check_row_groups(self, count: int) -> None:
        """Raise UnsupportedError if a file of so many row groups cannot be encrypted."""
        if count > MAX_ORDINAL + 1:
            raise UnsupportedError(
                f"row group {MAX_ORDINAL + 1:,} cannot be encrypted, ordinals have 16 bits; raise row_group_size"
            )

    def visible_key_values(self, key_values: Mapping[str, str | bytes]) -> Mapping[str, str | bytes]:
        """Return the key-value metadata of the footer; a plaintext one shows no bounds of encrypted geometries."""
        if not self._keys.plaintext_footer or _GEO not in key_values:
            return key_values
        document = json.loads(key_values[_GEO])
        for path, key in zip(self._paths, self._keys.leaves, strict=True):
            column = document.get("columns", {}).get(path[0])
            if key is not None and column is not None:
                column.pop("bbox", None)
                column["geometry_types"] = []  # which means that they are not known
        return {**key_values, _GEO: json.dumps(document)}

    def seal_index(self, data: bytes | memoryview, module: ModuleId) -> bytes | memoryview:
        """Return a column index or offset index as it is stored."""
        sealer = self.sealers[module.leaf]
        return data if sealer is None else sealer.seal_module(data, module)

    def seal_bloom_filter(self, data: bytes, row_group: int, leaf: int) -> bytes:
        """Return the header and bitset of a Bloom filter as they are stored, in a module each."""
        sealer = self.sealers[leaf]
        if sealer is None:
            return data
        end = skip_value(data, 0, wire.STRUCT)
        header = sealer.seal_module(data[:end], ModuleId(ModuleType.BLOOM_HEADER, row_group, leaf))
        return header + sealer.seal_module(data[end:], ModuleId(ModuleType.BLOOM_BITSET, row_group, leaf))

    def seal_row_group(self, row_group: EncodedThrift, ordinal: int) -> EncodedThrift:
        """Return a RowGroup whose encrypted columns have sealed metadata, and say by which key."""
        fields = split_fields(row_group)
        chunks = [
            EncodedThrift(self._seal_chunk(chunk, ordinal, leaf))
            for leaf, chunk in enumerate(split_list(fields[_COLUMNS][1]))
        ]
        fields[_COLUMNS] = wire.LIST, encode_field("RowGroup", "columns", chunks)
        return EncodedThrift(join_fields(fields))

    def _seal_chunk(self, chunk: bytes, row_group: int, leaf: int) -> bytes:
        sealer, key = self.sealers[leaf], self._keys.leaves[leaf]
        if sealer is None or key is None:
            return chunk
        fields = split_fields(chunk)
        if self._keys.plaintext_footer or not key.is_footer_key:
            meta_data = fields.pop(_META_DATA)[1]
            sealed = sealer.seal_module(meta_data, ModuleId(ModuleType.COLUMN_METADATA, row_group, leaf))
            fields[_SEALED_META_DATA] = (
                wire.BINARY,
                encode_field("ColumnChunk", "encrypted_column_metadata", sealed),
            )
            if self._keys.plaintext_footer:
                visible = {
                    number: field for number, field in split_fields(meta_data).items() if number not in _STRIPPED
                }
                fields[_META_DATA] = wire.STRUCT, join_fields(visible)
        fields[_CRYPTO] = wire.STRUCT, encode_struct("ColumnCryptoMetaData", self._describe_key(key, leaf))
        return join_fields(fields)

    def _describe_key(self, key: ModuleKey, leaf: int) -> dict[str, object]:
        """Return the ColumnCryptoMetaData of a leaf column."""
        if key.is_footer_key:
            return {"ENCRYPTION_WITH_FOOTER_KEY": {}}
        column_key = {"path_in_schema": list(self._paths[leaf]), "key_metadata": key.key_metadata}
        return {"ENCRYPTION_WITH_COLUMN_KEY": column_key}

    def seal_footer(self, footer: bytes) -> bytes:
        """Return the end of the file, magic number included: the footer sealed, or signed if it stays plain."""
        key_metadata = self._keys.footer.key_metadata
        if self._keys.plaintext_footer:
            fields = split_fields(footer)
            fields[_ALGORITHM] = wire.STRUCT, self._algorithm
            if key_metadata is not None:
                encoded = encode_field("FileMetaData", "footer_signing_key_metadata", key_metadata)
                fields[_SIGNING_KEY] = wire.BINARY, encoded
            footer = join_fields(fields)
            stored = footer + self._footer.sign_footer(footer)
        else:
            crypto = {"encryption_algorithm": self._algorithm, "key_metadata": key_metadata}
            module = self._footer.seal_module(footer, ModuleId(ModuleType.FOOTER))
            stored = encode_struct("FileCryptoMetaData", crypto) + module
        self.footer_digest = hashlib.sha256(stored).hexdigest()
        return stored + len(stored).to_bytes(4, "little") + self.magic
