"""Open the metadata of encrypted column chunks (Encryption.md), and check what their plain metadata shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numparq.crypto.aad import ModuleId, ModuleType
from numparq.errors import DecryptionError
from numparq.format.encryption import describe_key, footer_key, retrieve_key
from numparq.format.encryption_metadata import ColumnEncryption
from numparq.format.schema import Leaf
from numparq.io.source import Source

from .deviations import Findings, Location
from .footer import DecodedFooter
from .modules import FileModules, ModuleError, module_length
from .stored_chunk import SealedChunk
from .thrift import ThriftDecodeError, read_struct

if TYPE_CHECKING:
    from numparq.crypto.key import Key

_SECRET_FIELDS = ("statistics", "geospatial_statistics")
_FOOTER_KEY, _COLUMN_KEY = "ENCRYPTION_WITH_FOOTER_KEY", "ENCRYPTION_WITH_COLUMN_KEY"


@dataclass
class EncryptedColumns:
    """Encrypted column chunks of a file, by row group and leaf column.

    Attributes
    ----------
    sealed : dict of (int, int) to SealedChunk
        Chunks whose metadata was opened.
    locked : dict of (int, int) to (str, str)
        Check and message for chunks that cannot be opened.
    """

    sealed: dict[tuple[int, int], SealedChunk] = field(default_factory=dict)
    locked: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)


def is_encrypted(chunk: dict[str, Any]) -> bool:
    """Whether a ColumnChunk is encrypted."""
    return "crypto_metadata" in chunk or "encrypted_column_metadata" in chunk


def encrypted_columns(metadata: dict[str, Any], leaves: list[Leaf | None]) -> dict[tuple[str, ...], ColumnEncryption]:
    """Return what names the keys of the encrypted leaf columns."""
    columns: dict[tuple[str, ...], ColumnEncryption] = {}
    for group in metadata.get("row_groups", []):
        for leaf, chunk in zip(leaves, group.get("columns", []), strict=False):
            if leaf is not None and is_encrypted(chunk):
                crypto = chunk.get("crypto_metadata") or {}
                key_metadata = crypto.get(_COLUMN_KEY, {}).get("key_metadata")
                columns.setdefault(leaf.path, ColumnEncryption(_FOOTER_KEY in crypto, key_metadata))
    return columns


def _describe_key(chunk: dict[str, Any]) -> str:
    crypto = chunk.get("crypto_metadata") or {}
    if _COLUMN_KEY in crypto:
        return describe_key(crypto[_COLUMN_KEY].get("key_metadata"))
    return "with the footer key" if _FOOTER_KEY in crypto else "and nothing says by which key"


def open_columns(
    source: Source, tail: DecodedFooter, leaves: list[Leaf | None], findings: Findings
) -> EncryptedColumns:
    """Open the encrypted column chunks; the metadata in the footer's dict become the decrypted ones."""
    columns = EncryptedColumns()
    for row_group, group in enumerate(tail.metadata.get("row_groups", [])):
        chunks = group.get("columns", [])
        if len(chunks) != len(leaves):
            continue  # reported as group-columns
        for leaf, chunk in zip(leaves, chunks, strict=True):
            if leaf is None or not is_encrypted(chunk):
                continue
            opener = _ChunkOpener(chunk, leaf, findings, Location(row_group, leaf.name))
            opener.check_visible()
            try:
                columns.sealed[row_group, leaf.index] = opener.open(source, tail)
            except ModuleError as error:
                columns.locked[row_group, leaf.index] = error.check, error.message
        if any(map(is_encrypted, chunks)) and group.get("ordinal", row_group) != row_group:
            findings.add(
                "encrypted-ordinal",
                f"ordinal is {group['ordinal']}, but the position of the row group, {row_group}, is part of its AAD",
                Location(row_group),
            )
    return columns


@dataclass
class _ChunkOpener:
    """Opens an encrypted ColumnChunk, whose row group and column are those of `location`."""

    chunk: dict[str, Any]
    leaf: Leaf
    findings: Findings
    location: Location

    @property
    def row_group(self) -> int:
        return self.location.row_group or 0

    def check_visible(self) -> None:
        """Check that plain metadata of a chunk with encrypted metadata have no statistics."""
        visible = self.chunk.get("meta_data", {}) if "encrypted_column_metadata" in self.chunk else {}
        for name in (name for name in _SECRET_FIELDS if name in visible):
            message = f"the plain metadata of an encrypted column have {name}"
            self.findings.add("encrypted-statistics", message, self.location)
        if "size_statistics" in visible:
            self.findings.add(
                "writer-size-statistics",
                "the plain metadata of an encrypted column have size_statistics, which show its nulls and sizes",
                self.location,
            )

    def open(self, source: Source, tail: DecodedFooter) -> SealedChunk:
        """Open the metadata, and return the chunk with its pages and indexes; ModuleError if it cannot be opened."""
        chunk, modules = self.chunk, tail.modules
        if modules is None:
            raise ModuleError("not-checked", f"the column is encrypted, {_describe_key(chunk)}; not checked: no key")
        if chunk.get("file_path"):
            raise ModuleError("not-checked", "the column is encrypted and in another file, for which no AAD is defined")
        key = self._key(modules, tail.footer_key_metadata)
        if "encrypted_column_metadata" in chunk:
            chunk["meta_data"] = self._open_metadata(modules, key, chunk["encrypted_column_metadata"])
        metadata = chunk.get("meta_data") or {}
        first, dictionary = metadata.get("data_page_offset") or 0, metadata.get("dictionary_page_offset") or 0
        ordinals = self.row_group, self.leaf.index
        return SealedChunk(source, modules, key, ordinals, first_is_dictionary=0 < dictionary < first)

    def _key(self, modules: FileModules, footer_key_metadata: bytes | None) -> Key:
        """Return the key of the chunk; ModuleError if it is not known."""
        crypto = self.chunk.get("crypto_metadata") or {}
        column = crypto.get(_COLUMN_KEY)
        if column is None and _FOOTER_KEY not in crypto:
            raise ModuleError("encrypted-key", "the column chunk is encrypted, and crypto_metadata name no key")
        try:
            if column is None:
                return footer_key(modules.keys, footer_key_metadata)
            path, metadata = tuple(column.get("path_in_schema", ())), column.get("key_metadata")
            if path != self.leaf.path:
                message = f"path_in_schema of the column's key is {'.'.join(path)!r}, not {self.leaf.name!r}"
                self.findings.add("encrypted-key", message, self.location)
            key = retrieve_key(lambda: modules.keys.column_key(self.leaf.path, metadata))
        except DecryptionError as error:
            raise ModuleError("not-checked", f"the column is encrypted; not checked: {error.message}") from None
        if key is None:
            raise ModuleError("not-checked", f"the column is encrypted, {describe_key(metadata)}; not checked: no key")
        return key

    def _open_metadata(self, modules: FileModules, key: Key, stored: bytes) -> dict[str, Any]:
        """Return the ColumnMetaData in a module; ModuleError if it cannot be opened or read."""
        row_group, leaf = self.row_group, self.leaf.index
        if module_length(stored, len(stored), 0) != len(stored):
            raise ModuleError("module-length", "encrypted_column_metadata are longer than their module")
        module, position = ModuleId(ModuleType.COLUMN_METADATA, row_group, leaf), ~(row_group << 16 | leaf)
        plaintext = modules.open_gcm(key, stored, module, position)
        noted: list[tuple[str, str]] = []
        try:
            metadata, end = read_struct("ColumnMetaData", plaintext, lambda check, text: noted.append((check, text)))
        except ThriftDecodeError as error:
            raise ModuleError("thrift-struct", f"the encrypted column metadata cannot be read: {error}") from None
        self.findings.add_all(noted, self.location)
        modules.count_unread(len(plaintext) - end)
        return metadata
