"""Fuzz target of pages: bodies changed below the codec with valid CRCs, changed headers, changed order."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from numparq.compression.codecs import decompressor
from numparq.kernels.enums import GZIP, UNCOMPRESSED, ZSTD
from support.files.builder import DATA_PAGE_V2, FilePage, HandmadeFile, to_bytes
from support.files.codec_framings import FRAMINGS
from support.kernels.damaged_chunks import change_bytes
from support.oracles.hybrid_rle import uleb

from . import corpus
from .case import FuzzCase
from .mutations import mutate, parse_struct

Generator = np.random.Generator
_NAMES = tuple(name for name in corpus.NAMES if name not in ("no rows", "no columns", "parts"))


def _halves(compress: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda data: compress(data[: len(data) // 2]) + compress(data[len(data) // 2 :])


_FORMS = {
    "none": (UNCOMPRESSED, bytes),
    **FRAMINGS,
    "gzip of two members": (GZIP, _halves(FRAMINGS["gzip"][1])),
    "zstd of two frames": (ZSTD, _halves(FRAMINGS["zstd"][1])),
}
_FORM_NAMES = tuple(_FORMS)
_COUNTS = (
    0,
    1,
    2,
    7,
    8,
    9,
    31,
    32,
    33,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    1 << 14,
    1 << 20,
    1 << 30,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    (1 << 63) - 1,
    (1 << 64) - 1,
)


@dataclass
class _DamagedPage(FilePage):
    """A page whose header is raw bytes."""

    raw: bytes = b""

    def stored(self) -> bytes:
        return self.raw + self.body


def _levels(page: FilePage) -> int:
    """Return the number of uncompressed bytes at the start of a body."""
    facts = page.header.data_page_header_v2
    if page.header.type != DATA_PAGE_V2:
        return 0
    return facts.definition_levels_byte_length + facts.repetition_levels_byte_length


def _opened(page: FilePage, codec: int) -> bytes:
    """Decompress a valid page."""
    levels = _levels(page)
    facts = page.header.data_page_header_v2
    size = page.header.uncompressed_page_size - levels
    if codec == UNCOMPRESSED or (facts is not None and facts.is_compressed is False):
        return page.body
    out = bytearray(size)
    decompressor(codec)(memoryview(page.body[levels:]), memoryview(out))
    return page.body[:levels] + bytes(out)


def _packed(page: FilePage, body: bytes, form: str, checksum: bool) -> FilePage:
    """Put a decompressed body into a page."""
    levels = min(_levels(page), len(body))
    header = copy.copy(page.header)
    header.uncompressed_page_size = len(body)
    header.compressed_page_size = header.crc = None
    if header.data_page_header_v2 is not None:
        header.data_page_header_v2 = copy.copy(header.data_page_header_v2)
        header.data_page_header_v2.is_compressed = True
    made = FilePage(header, body[:levels] + _FORMS[form][1](body[levels:]))
    header.compressed_page_size = len(made.body)
    return made.with_crc() if checksum else made


@cache
def _recoded(name: str, column: int, form: str) -> tuple[HandmadeFile, dict]:
    """Recompress all pages of a sample's column; return them with the decompressed bodies."""
    whole = corpus.columns(name)[column]
    footer = copy.deepcopy(whole.footer)
    chunks, bodies = {}, {}
    for (group, leaf), pages in whole.chunks.items():
        facts = footer.row_groups[group].columns[leaf].meta_data
        plain = [_opened(page, facts.codec) for page in pages]
        facts.codec = _FORMS[form][0]
        chunks[group, leaf] = [_packed(page, body, form, True) for page, body in zip(pages, plain, strict=True)]
        bodies[group, leaf] = plain
    return HandmadeFile(footer, chunks), bodies


# --- changes ----------------------------------------------------------------------------------------------------------


def _sections(body: bytes) -> list[int]:
    """Return the ends of up to two length-prefixed level sections."""
    found = [0]
    for _ in range(2):
        if found[-1] + 4 <= len(body):
            (length,) = struct.unpack_from("<I", body, found[-1])
            if found[-1] + 4 + length <= len(body):
                found.append(found[-1] + 4 + length)
    return found


def _changed_body(rng: Generator, page: FilePage, body: bytes) -> bytes:
    """Change bytes at the start of a section, where counts and widths are."""
    places = [*_sections(body), min(_levels(page), len(body))]
    place = int(rng.choice(places)) + int(rng.choice([0, 0, 1, 4]))
    head, rest = body[:place], body[place:]
    if rng.random() < 0.7:
        return head + change_bytes(rng, rest)
    count = int(rng.integers(0, len(_COUNTS)))
    number = uleb(_COUNTS[count]) if rng.random() < 0.7 else struct.pack("<Q", _COUNTS[count])[:4]
    return head + number + rest[len(number) if rng.random() < 0.5 else 1 :]


def _spoilt(rng: Generator, page: FilePage) -> FilePage:
    encoded = to_bytes(page.header)
    tree, length = parse_struct(encoded)
    assert length == len(encoded)
    return _DamagedPage(page.header, page.body, mutate(rng, tree))


def _restated(rng: Generator, page: FilePage) -> FilePage:
    """Change the header's encoding or counts to plausible others."""
    header = copy.deepcopy(page.header)
    facts = header.data_page_header or header.data_page_header_v2 or header.dictionary_page_header
    kind = rng.random()
    if kind < 0.6:
        facts.encoding = int(rng.integers(0, 12))
    elif kind < 0.8:
        facts.num_values = max(facts.num_values + int(rng.choice([-9, -1, 1, 7])), 0)
    else:
        header.uncompressed_page_size = max(header.uncompressed_page_size + int(rng.choice([-9, -1, 1, 64])), 0)
    return replace(page, header=header)


def _rearranged(rng: Generator, pages: list[FilePage], others: list[FilePage]) -> None:
    """Drop, repeat or swap pages, or insert one of another column."""
    place = int(rng.integers(0, len(pages)))
    kind = int(rng.integers(0, 4))
    if kind == 0:
        del pages[place]
    elif kind == 1:
        pages.insert(place, pages[place])
    elif kind == 2:
        other = int(rng.integers(0, len(pages)))
        pages[place], pages[other] = pages[other], pages[place]
    elif others:
        pages[place] = others[int(rng.integers(0, len(others)))]


def case(rng: Generator) -> FuzzCase:
    """Draw a case."""
    name = _NAMES[int(rng.integers(0, len(_NAMES)))]
    columns = corpus.columns(name)
    column = int(rng.integers(0, len(columns)))
    form = _FORM_NAMES[int(rng.integers(0, len(_FORM_NAMES)))] if rng.random() < 0.7 else "none"
    whole, bodies = _recoded(name, column, form)
    full = [key for key, pages in whole.chunks.items() if pages]
    key = full[int(rng.integers(0, len(full)))]
    pages = list(whole.chunks[key])
    what = f"{name}, column {column}, {form}, chunk {key}: "
    if rng.random() < 0.08 and not _is_null(whole):
        return _under_checksum(rng, what, name, whole, key)
    checksum = bool(rng.random() < 0.7)
    for _ in range(1 if rng.random() < 0.7 else 2):
        place = int(rng.integers(0, len(pages)))
        kind = rng.random()
        if kind < 0.6 and place < len(bodies[key]):
            body = _changed_body(rng, pages[place], bodies[key][place])
            pages[place] = _packed(pages[place], body, form, checksum)
        elif kind < 0.7:
            page = replace(
                pages[place], header=copy.copy(pages[place].header), body=change_bytes(rng, pages[place].body)
            )
            page.header.compressed_page_size = len(page.body)
            pages[place] = page.with_crc()
        elif kind < 0.8:
            pages[place] = _spoilt(rng, pages[place])
        elif kind < 0.92:
            pages[place] = _restated(rng, pages[place])
        else:
            other = int(rng.integers(0, len(columns)))
            chunks = [found for found in _recoded(name, other, form)[0].chunks.values() if found]
            _rearranged(rng, pages, [page for found in chunks for page in found])
        what += f"page {place} by {kind:.2f} "
        if not pages:
            break
    made = HandmadeFile(whole.footer, {**whole.chunks, key: pages})
    return FuzzCase(what, name, made.stored())


def _is_null(whole: HandmadeFile) -> bool:
    """Whether a column has the null type, whose pages are never read."""
    logical = whole.footer.schema[-1].logicalType
    return logical is not None and logical.UNKNOWN is not None


def _under_checksum(rng: Generator, what: str, name: str, whole: HandmadeFile, key: tuple[int, int]) -> FuzzCase:
    """Change bytes of a page but not its CRC."""
    pages = list(whole.chunks[key])
    place = int(rng.integers(0, len(pages)))
    body = bytearray(pages[place].body)
    for _ in range(int(rng.integers(1, 4)) if body else 0):
        body[int(rng.integers(0, len(body)))] ^= 1 << int(rng.integers(0, 8))
    pages[place] = FilePage(pages[place].header, bytes(body))
    made = HandmadeFile(whole.footer, {**whole.chunks, key: pages}).stored()
    sound = whole.stored()
    return FuzzCase(f"{what}page {place} under its checksum", name, made, None if made == sound else sound)
