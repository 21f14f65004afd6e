"""Check the ends of a file: magic numbers, footer length, FileMetaData (README.md), key-value metadata."""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numparq.errors import InvalidFileError
from numparq.format.encryption_metadata import EncryptionMetadata
from numparq.format.footer.tail import ENCRYPTED_MAGIC, MAGIC
from numparq.format.key_values.arrow import decode_schema_message
from numparq.format.key_values.flatbuffer import FlatbufferError
from numparq.io.source import Source, read_bytes
from numparq.util.pluralize import agree_noun, agree_verb, pluralize
from numparq.util.text import is_utf8

from .deviations import Findings
from .encrypted_footer import check_signature, describe_encryption, open_footer, open_modules, read_crypto_metadata
from .modules import SIGNATURE_BYTES, FileModules
from .schema_elements import SchemaTreeNode
from .thrift import ThriftDecodeError, read_struct

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource

_FIELDS = 1  # vtable slot in an Arrow Schema
_NAME, _MAX_NAME_BYTES = 0, 1 << 16  # vtable slot in an Arrow Field, and a limit

_TAIL_BYTES = 8  # footer length and magic number


@dataclass(frozen=True)
class DecodedFooter:
    """Offset of the footer, and its FileMetaData as a dict (see `read_struct`).

    Attributes
    ----------
    modules : FileModules or None
        Decryptor of an encrypted file, if keys were given.
    encryption : EncryptionMetadata or None
        How the file is encrypted, without its columns; None: it is not.
    """

    start: int
    metadata: dict[str, Any]
    modules: FileModules | None = None
    encryption: EncryptionMetadata | None = None

    @property
    def footer_key_metadata(self) -> bytes | None:
        """Key metadata of the footer key."""
        return None if self.encryption is None else self.encryption.footer_key_metadata

    @property
    def is_locked(self) -> bool:
        """Whether the footer is encrypted and could not be opened."""
        return not self.metadata


def check_footer(source: Source, findings: Findings, keys: KeySource | None = None) -> DecodedFooter | None:
    """Check both ends of a file and read the footer; None if it cannot be read.

    Raise InvalidFileError if neither end has a magic number.
    """
    head = read_bytes(source, 0, min(4, source.size))
    last = read_bytes(source, max(source.size - _TAIL_BYTES, 0), min(_TAIL_BYTES, source.size))
    magic = last[-4:] if last[-4:] in (MAGIC, ENCRYPTED_MAGIC) else head
    if magic not in (MAGIC, ENCRYPTED_MAGIC):
        raise InvalidFileError("the file is not a Parquet file: it neither begins nor ends with b'PAR1'")
    if head != magic:
        findings.add("magic-head", f"the file begins with {head!r} instead of {magic!r}")
    if last[-4:] != magic or source.size < len(MAGIC) + _TAIL_BYTES:
        findings.add(
            "magic-tail",
            f"the file of {pluralize(source.size, 'byte')} ends with {last[-4:]!r} instead of a footer and {magic!r}: "
            "it was truncated, or never finished",
        )
        return None
    length = int.from_bytes(last[:4], "little")
    start = source.size - _TAIL_BYTES - length
    if start < len(MAGIC):
        findings.add(
            "footer-length",
            f"the footer length is {pluralize(length, 'byte')}, more than the file of "
            f"{pluralize(source.size, 'byte')} can hold",
        )
        return None
    data = read_bytes(source, start, length)
    if magic == ENCRYPTED_MAGIC:
        return _open_footer(data, start, findings, keys)
    footer = _decode_footer(data, start, findings)
    return footer and _check_encryption(footer, data, findings, keys)


def _open_footer(data: bytes, start: int, findings: Findings, keys: KeySource | None) -> DecodedFooter | None:
    """Return an encrypted footer, decrypted if its key is known; None if it is damaged."""
    crypto_metadata = read_crypto_metadata(data, findings)
    if crypto_metadata is None:
        return None
    crypto, end = crypto_metadata
    if keys is None:
        findings.add("not-checked", "the footer is encrypted; not checked: no key")
    algorithm, key_metadata = crypto.get("encryption_algorithm") or {}, crypto.get("key_metadata")
    encryption = describe_encryption(algorithm, key_metadata, has_encrypted_footer=True)
    modules = open_modules(algorithm, keys, findings)
    plaintext = None if modules is None else open_footer(data[end:], modules, key_metadata, findings)
    if plaintext is None:
        return DecodedFooter(start, {}, encryption=encryption)
    footer = _decode_footer(plaintext, start, findings)
    return footer and replace(footer, modules=modules, encryption=encryption)


def _check_encryption(footer: DecodedFooter, data: bytes, findings: Findings, keys: KeySource | None) -> DecodedFooter:
    """Check that a plaintext footer is signed, if keys were given."""
    algorithm = footer.metadata.get("encryption_algorithm")
    if algorithm is None:
        if keys is not None and not keys.allow_plaintext_files:
            findings.add("file-plain", "keys were given, but the file is not encrypted")
        return footer
    key_metadata = footer.metadata.get("footer_signing_key_metadata")
    encryption = describe_encryption(algorithm, key_metadata, has_encrypted_footer=False)
    modules = open_modules(algorithm, keys, findings)
    if modules is not None and modules.keys.check_footer_integrity:
        check_signature(data, modules, key_metadata, findings)
    return replace(footer, modules=modules, encryption=encryption)


def _decode_footer(data: bytes, start: int, findings: Findings) -> DecodedFooter | None:
    length = len(data)
    noted: list[tuple[str, str]] = []  # held back until the writer is known
    try:
        metadata, end = read_struct("FileMetaData", data, lambda check, text: noted.append((check, text)))
        findings.created_by = metadata.get("created_by", "")
        findings.add_all(noted)
    except ThriftDecodeError as error:
        findings.add_all(noted)
        findings.add("thrift-struct", f"the footer cannot be read: {error}")
        return None
    signed = metadata.get("encryption_algorithm") is not None
    if end != length and not (signed and length - end == SIGNATURE_BYTES):
        findings.add(
            "footer-bytes",
            f"{pluralize(length - end, 'byte')} {agree_verb(length - end, 'follow')} the metadata in the footer",
        )
    if metadata.get("version") not in (1, 2, None):
        findings.add("footer-version", f"version is {metadata['version']}, but only 1 and 2 are defined")
    groups = metadata.get("row_groups", [])
    total = sum(group.get("num_rows", 0) for group in groups)
    if "num_rows" in metadata and metadata["num_rows"] != total:
        findings.add(
            "footer-rows",
            f"num_rows is {metadata['num_rows']:,}, but the row groups have {pluralize(total, 'row')} in total",
        )
    return DecodedFooter(start, metadata)


def check_key_values(metadata: dict[str, Any], root: SchemaTreeNode, findings: Findings) -> None:
    """Check the key-value metadata of a footer."""
    pairs = metadata.get("key_value_metadata") or []
    counts = Counter(pair.get("key") for pair in pairs)
    for key, count in counts.items():
        if count > 1:
            findings.add("key-duplicate", f"key {key!r} occurs {count} times; readers use only one of the values")
    for number, pair in enumerate(pairs):
        if not all(map(is_utf8, (pair.get("key") or "", pair.get("value") or ""))):
            key = repr(pair.get("key"))
            findings.add("key-utf8", f"key-value pair {number}, of key {key}, is not UTF-8; polars refuses such files")
    values = {pair.get("key"): pair["value"] for pair in reversed(pairs) if "value" in pair}
    columns = [child.path[-1] for child in root.children]
    if "ARROW:schema" in values:
        _check_arrow_schema(values["ARROW:schema"], columns, findings)
    if "pandas" in values:
        _check_pandas(values["pandas"], columns, findings)


def _check_arrow_schema(value: str, columns: list[str], findings: Findings) -> None:
    try:
        names = _field_names(value)
    except (binascii.Error, UnicodeError, FlatbufferError, ValueError) as error:
        findings.add("key-arrow-schema", f"ARROW:schema is not a valid Arrow schema: {error}")
        return
    if len(names) != len(columns):
        findings.add(
            "key-columns",
            f"ARROW:schema has {pluralize(len(names), 'field')}, the file {len(columns)} "
            f"{agree_noun(len(columns), 'column')}",
        )
    elif names != columns:
        first = next(number for number, name in enumerate(names) if name != columns[number])
        findings.add(
            "key-columns", f"column {first} is {names[first]!r} in ARROW:schema, but {columns[first]!r} in the file"
        )


def _field_names(value: str) -> list[str]:
    """Return the field names of a base64-encoded Arrow schema message."""
    base64.b64decode(value.encode("ascii", "strict"), validate=True)
    schema = decode_schema_message(value)
    count = schema.vector_length(_FIELDS)
    return [schema.vector_item(_FIELDS, number).text(_NAME, _MAX_NAME_BYTES) or "" for number in range(count)]


def _check_pandas(value: str, columns: list[str], findings: Findings) -> None:
    try:
        document = json.loads(value)
        described = [column.get("field_name") or column.get("name") for column in document.get("columns", [])]
        index = [item for item in document.get("index_columns", []) if isinstance(item, str)]
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        findings.add("key-pandas", f"the pandas metadata cannot be read: {error}")
        return
    known = set(columns)
    missing = [name for name in [*described, *index] if isinstance(name, str) and name not in known]
    if missing:
        findings.add("key-columns", f"the pandas metadata describe column {missing[0]!r}, which the file lacks")
