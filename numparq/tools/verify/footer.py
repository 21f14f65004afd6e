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

_TAIL_BYTES = 8  # length and magic number
_SIGNATURE_BYTES = 28  # bytes behind the metadata of a footer that is signed (Encryption.md)


@dataclass(frozen=True)
class DecodedFooter:
    """What stands at the end of a file.

    Parameters
    ----------
    start : int
        Where the footer begins.
    metadata : dict
        FileMetaData, as `read_struct` gives it.
    """

    start: int
    metadata: dict[str, Any]


def check_footer(source: Source, findings: Findings) -> DecodedFooter | None:
    """Read the footer, and note what is wrong with it.

    Returns
    -------
    DecodedFooter or None
        None where there is none that can be read.

    Raises
    ------
    InvalidFileError
        When the file is no Parquet file at all: it neither begins nor ends like one.
    UnsupportedError
        When its footer is encrypted.
    """
    head = read_bytes(source, 0, min(4, source.size))
    last = read_bytes(source, max(source.size - _TAIL_BYTES, 0), min(_TAIL_BYTES, source.size))
    if ENCRYPTED_MAGIC in (head, last[-4:]):
        raise UnsupportedError("the footer is encrypted, which numparq does not read yet")
    if MAGIC not in (head, last[-4:]):
        raise InvalidFileError("it is no Parquet file: it neither begins nor ends with b'PAR1'")
    if head != MAGIC:
        findings.add("magic-head", f"the file begins with {head!r} where a Parquet file has {MAGIC!r}")
    if last[-4:] != MAGIC or source.size < len(MAGIC) + _TAIL_BYTES:
        findings.add(
            "magic-tail",
            f"the file of {source.size:,} bytes ends with {last[-4:]!r} where a Parquet file has {MAGIC!r} behind a "
            "footer: it was cut off, or never finished",
        )
        return None
    length = int.from_bytes(last[:4], "little")
    start = source.size - _TAIL_BYTES - length
    if start < len(MAGIC):
        findings.add(
            "footer-length", f"the footer claims {length:,} bytes, more than the file of {source.size:,} has room for"
        )
        return None
    return _decode_footer(source, start, length, findings)


def _decode_footer(source: Source, start: int, length: int, findings: Findings) -> DecodedFooter | None:
    data = read_bytes(source, start, length)
    noted: list[tuple[str, str]] = []  # until it is known who wrote the file
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
        findings.add("footer-bytes", f"the metadata end {length - end:,} bytes before the footer does")
    if metadata.get("version") not in (1, 2, None):
        findings.add("footer-version", f"the footer says version {metadata['version']}, where 1 and 2 are known")
    groups = metadata.get("row_groups", [])
    total = sum(group.get("num_rows", 0) for group in groups)
    if "num_rows" in metadata and metadata["num_rows"] != total:
        findings.add(
            "footer-rows", f"the footer says {metadata['num_rows']:,} rows, and its row groups have {total:,} together"
        )
    return DecodedFooter(start, metadata)
