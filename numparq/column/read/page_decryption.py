"""Bodies of encrypted pages (Encryption.md), decrypted where they lie before they are decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from numparq.errors import DecryptionError
from numparq.kernels.enums import DATA_PAGE_V2
from numparq.kernels.tables import (
    C_FIRST_IS_DICTIONARY,
    C_LEAF,
    C_ROW_GROUP,
    P_BODY,
    P_CHUNK,
    P_COMPRESSED,
    P_CRC,
    P_DEFINITION_BYTES,
    P_IN_CHUNK,
    P_REPETITION_BYTES,
    P_SEALED,
    P_TYPE,
    PLAINTEXT_OFFSET,
)

from .pages import PageFailure, Pages

if TYPE_CHECKING:
    from numparq.format.encryption import FileDecryption

_PAGE_FIELDS = [P_CHUNK, P_IN_CHUNK, P_BODY, P_COMPRESSED, P_SEALED, P_TYPE, P_DEFINITION_BYTES, P_REPETITION_BYTES]
_CHUNK_FIELDS = [C_ROW_GROUP, C_LEAF, C_FIRST_IS_DICTIONARY]


def open_pages(keys: FileDecryption, pages: Pages) -> None:
    """Decrypt the bodies of encrypted pages in place, once; raise PageFailure for one that does not authenticate."""
    table = pages.pages
    sealed = table[:, P_SEALED].nonzero()[0]
    if not len(sealed):
        return
    raw = memoryview(pages.raw)  # type: ignore[arg-type]
    chunk, cipher, first = -1, None, 0
    for number, fields in zip(sealed.tolist(), table[sealed][:, _PAGE_FIELDS].tolist(), strict=True):
        owner, in_chunk, body, size, overhead, kind, *levels = fields
        if owner != chunk or cipher is None:
            row_group, leaf, first = pages.chunks[owner, _CHUNK_FIELDS].tolist()
            chunk, cipher = owner, keys.cipher(row_group, leaf)
        page = None if in_chunk < first else in_chunk - first
        start, stored = body - PLAINTEXT_OFFSET, size + overhead
        try:
            if kind == DATA_PAGE_V2 and (before := _num_plain_level_bytes(sum(levels), raw, start, stored)):
                moved = bytes(raw[start : start + before])
                cipher.open_body(raw, start + before, stored - before, page)
                raw[start + PLAINTEXT_OFFSET : start + PLAINTEXT_OFFSET + before] = moved
            else:
                cipher.open_body(raw, start, stored, page)
        except DecryptionError as error:
            _mark_opened(table, sealed[sealed < number])
            raise PageFailure(number, error=error) from None
    _mark_opened(table, sealed)


def _mark_opened(table: np.ndarray, pages: np.ndarray) -> None:
    """Mark pages as decrypted, whose checksums are those of the bytes as stored."""
    table[pages, P_SEALED], table[pages, P_CRC] = 0, -1


def _num_plain_level_bytes(levels: int, raw: memoryview, start: int, stored: int) -> int:
    """Return the bytes of levels in front of the module of a page, which then holds the values alone; else 0.

    parquet-java (1.17 at least) writes pages of version 2 so; these levels are not authenticated.
    """
    if not levels or _length(raw, start) == stored - 4:
        return 0
    return levels if _length(raw, start + levels) == stored - levels - 4 else 0


def _length(raw: memoryview, position: int) -> int:
    return int.from_bytes(raw[position : position + 4], "little")
