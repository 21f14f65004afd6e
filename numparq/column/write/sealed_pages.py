"""Seal the pages of encoded column chunks (Encryption.md): bodies, on the thread that encoded them, and headers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from numparq.crypto.aad import MAX_ORDINAL, ModuleId, ModuleType, module_aad
from numparq.crypto.seal import Sealer
from numparq.errors import SchemaError, UnsupportedError
from numparq.kernels.thrift.encode import ABSENT

from .chunk import EncodedChunk, EncodedLeaf
from .pages import MAX_PAGE_SIZE, EncodedPage


class PageSealing(NamedTuple):
    """Sealer of each leaf column, None for plain ones, and the ordinal of the first row group that is encoded.

    Pages come without checksums, which are those of the stored bytes; `checksum` says whether to add them.
    """

    sealers: Sequence[Sealer | None]
    first_row_group: int
    checksum: bool

    def seal(self, leaf: EncodedLeaf) -> None:
        """Replace the pages of a leaf's chunks by sealed ones, of which sizes and checksums are."""
        sealer = self.sealers[leaf.leaf.index]
        if sealer is None:
            if self.checksum:
                _add_checksums(leaf)
            return
        pages: list[EncodedPage] = []
        aads: list[bytes] = []
        for row_group, chunk in enumerate(leaf.chunks, self.first_row_group):
            pages += _pages(chunk)
            aads += _page_aads(
                sealer, chunk, row_group, leaf.leaf.index, (ModuleType.DICTIONARY_PAGE, ModuleType.DATA_PAGE)
            )
        bodies = sealer.seal_bodies([page.body for page in pages], aads)
        sealed = iter([_replace_body(page, body, self.checksum) for page, body in zip(pages, bodies, strict=True)])
        for chunk in leaf.chunks:
            chunk.dictionary = None if chunk.dictionary is None else next(sealed)
            chunk.pages = [next(sealed) for _ in chunk.pages]


def _add_checksums(leaf: EncodedLeaf) -> None:
    """Add checksums to the plain pages of a leaf's chunks."""
    for chunk in leaf.chunks:
        chunk.dictionary = chunk.dictionary and _replace_body(chunk.dictionary, chunk.dictionary.body, True)
        chunk.pages = [_replace_body(page, page.body, True) for page in chunk.pages]


def seal_headers(
    sealer: Sealer, chunk: EncodedChunk, row_group: int, leaf: int, headers: Sequence[memoryview]
) -> Iterator[memoryview]:
    """Return the sealed headers of a chunk's pages, the dictionary page's first."""
    kinds = ModuleType.DICTIONARY_PAGE_HEADER, ModuleType.DATA_PAGE_HEADER
    return iter(sealer.seal_modules(headers, _page_aads(sealer, chunk, row_group, leaf, kinds)))


def _pages(chunk: EncodedChunk) -> list[EncodedPage]:
    """Return all pages of a chunk, the dictionary page first."""
    return chunk.pages if chunk.dictionary is None else [chunk.dictionary, *chunk.pages]


def _page_aads(
    sealer: Sealer, chunk: EncodedChunk, row_group: int, leaf: int, kinds: tuple[ModuleType, ModuleType]
) -> list[bytes]:
    """Return the AAD of all pages of a chunk; `kinds` are the types of the dictionary page's and data pages' modules.

    Data pages count from 0, without the dictionary page.
    """
    if len(chunk.pages) > MAX_ORDINAL + 1:
        raise UnsupportedError(
            f"data page {MAX_ORDINAL + 1:,} of a column chunk cannot be encrypted, ordinals have 16 bits; "
            "raise data_page_size and max_rows_per_page, or lower row_group_size"
        )
    of_dictionary, of_data = (module_aad(sealer.file_aad, ModuleId(kind, row_group, leaf)) for kind in kinds)
    aads = [of_data + number.to_bytes(2, "little") for number in range(len(chunk.pages))]
    return aads if chunk.dictionary is None else [of_dictionary, *aads]


def _replace_body(page: EncodedPage, body: bytes | memoryview, checksum: bool) -> EncodedPage:
    """Return a page with the body that is stored; its uncompressed size stays that of the plaintext."""
    if len(body) > MAX_PAGE_SIZE:
        raise SchemaError("an encrypted page is too large: the format's limit is 2 GiB; lower data_page_size")
    crc = ABSENT
    if checksum:
        crc = zlib.crc32(body)
        crc -= crc >> 31 << 32  # Thrift i32, same bits
    page_type, uncompressed_size, _, _, *fields = page.header
    return EncodedPage(page_type, body, page.uncompressed_size, (page_type, uncompressed_size, len(body), crc, *fields))
