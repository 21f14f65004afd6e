"""Check the ends of a file: magic numbers, footer length, FileMetaData (README.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numparq.errors import InvalidFileError, UnsupportedError
from numparq.format.footer.tail import ENCRYPTED_MAGIC, MAGIC
from numparq.io.source import Source, read_bytes

from .deviations import Findings
from .thrift import ThriftDecodeError, read_struct

__all__ = ["DecodedFooter", "check_footer"]

_TAIL_BYTES = 8  # footer length and magic number
_SIGNATURE_BYTES = 28  # signature after the metadata of a signed footer (Encryption.md)


@dataclass(frozen=True)
class DecodedFooter:
    """Offset of the footer, and its FileMetaData as a dict (see `read_struct`)."""

    start: int
    metadata: dict[str, Any]


def check_footer(source: Source, findings: Findings) -> DecodedFooter | None:
    """Check both ends of a file and read the footer; None if it cannot be read.

    Raise InvalidFileError if neither end has the magic number, UnsupportedError if the footer is encrypted.
    """
    head = read_bytes(source, 0, min(4, source.size))
    last = read_bytes(source, max(source.size - _TAIL_BYTES, 0), min(_TAIL_BYTES, source.size))
    if ENCRYPTED_MAGIC in (head, last[-4:]):
        raise UnsupportedError("the footer is encrypted, which numparq does not read yet")
    if MAGIC not in (head, last[-4:]):
        raise InvalidFileError("the file is not a Parquet file: it neither begins nor ends with b'PAR1'")
    if head != MAGIC:
        findings.add("magic-head", f"the file begins with {head!r} instead of {MAGIC!r}")
    if last[-4:] != MAGIC or source.size < len(MAGIC) + _TAIL_BYTES:
        findings.add(
            "magic-tail",
            f"the file of {source.size:,} bytes ends with {last[-4:]!r} instead of a footer and {MAGIC!r}: "
            "it was truncated, or never finished",
        )
        return None
    length = int.from_bytes(last[:4], "little")
    start = source.size - _TAIL_BYTES - length
    if start < len(MAGIC):
        findings.add(
            "footer-length",
            f"the footer length is {length:,} bytes, more than the file of {source.size:,} bytes can hold",
        )
        return None
    return _decode_footer(source, start, length, findings)


def _decode_footer(source: Source, start: int, length: int, findings: Findings) -> DecodedFooter | None:
    data = read_bytes(source, start, length)
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
    if end != length and not (signed and length - end == _SIGNATURE_BYTES):
        findings.add("footer-bytes", f"{length - end:,} bytes follow the metadata in the footer")
    if metadata.get("version") not in (1, 2, None):
        findings.add("footer-version", f"version is {metadata['version']}, but only 1 and 2 are defined")
    groups = metadata.get("row_groups", [])
    total = sum(group.get("num_rows", 0) for group in groups)
    if "num_rows" in metadata and metadata["num_rows"] != total:
        findings.add(
            "footer-rows", f"num_rows is {metadata['num_rows']:,}, but the row groups have {total:,} rows in total"
        )
    return DecodedFooter(start, metadata)
