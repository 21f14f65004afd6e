"""Encrypted files with one deviation from the specification each, by the check that finds it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

import numparq
from support.files.builder import from_bytes, to_bytes
from support.oracles.encryption import (
    COLUMN_METADATA,
    DATA_PAGE,
    DATA_PAGE_HEADER,
    EncryptedFile,
    aad,
    open_gcm,
    seal_gcm,
)

FOOTER_KEY, COLUMN_KEY = b"f" * 16, b"c" * 32
A, L, P = range(3)  # leaf columns: with a key of its own, with the footer key, plain


def keys(**options: Any) -> numparq.Decryption:
    return numparq.Decryption(FOOTER_KEY, {"a": COLUMN_KEY}, **options)


@cache
def sound_file(plaintext_footer: bool = False, **options: Any) -> bytes:
    """Return a valid file: two row groups, two pages a column, indexes and Bloom filters."""
    numbers = np.arange(80)
    frame = pd.DataFrame({"a": numbers, "l": [[number, 7] for number in numbers], "p": [f"p{n % 3}" for n in numbers]})
    encryption = numparq.Encryption(
        FOOTER_KEY,
        {"a": COLUMN_KEY, "l": None},
        plaintext_footer=plaintext_footer,
        algorithm=options.pop("algorithm", "AES_GCM_V1"),
        aad_prefix=options.pop("aad_prefix", None),
    )
    return numparq.to_parquet(
        frame,
        encryption=encryption,
        row_group_size=40,
        max_rows_per_page=20,
        use_dictionary=["p"],
        bloom_filter_options={"a": True},
        **options,
    )


def opened(plaintext_footer: bool = True, **options: Any) -> EncryptedFile:
    return EncryptedFile(sound_file(plaintext_footer, **options), FOOTER_KEY, {"a": COLUMN_KEY})


def chunk(file: EncryptedFile, leaf: int = A, row_group: int = 0) -> Any:
    return file.footer.row_groups[row_group].columns[leaf]


def first_page(file: EncryptedFile, leaf: int = A) -> tuple[int, int, Any]:
    """Return where the first page of a column and its body begin, and its header."""
    start = file.metadata(0, leaf).data_page_offset
    (length,) = struct.unpack("<I", file.data[start : start + 4])
    body = start + 4 + length
    header = open_gcm(
        file.key(chunk(file, leaf)), file.data[start:body], aad(file.file_aad, DATA_PAGE_HEADER, 0, leaf, 0)
    )
    return start, body, from_bytes("PageHeader", header)[0]


def replaced(data: bytes, position: int, content: bytes) -> bytes:
    return data[:position] + content + data[position + len(content) :]


def wrong_path() -> bytes:
    file = opened(False)
    chunk(file).crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY.path_in_schema = [b"b"]
    return file.save()


def wrong_ordinal() -> bytes:
    file = opened(False)
    file.footer.row_groups[1].ordinal = 5
    return file.save()


def visible_statistics(name: str = "statistics", created_by: bytes | None = None) -> bytes:
    file = opened()
    setattr(chunk(file, L).meta_data, name, getattr(file.metadata(0, L), name))
    file.footer.created_by = created_by or file.footer.created_by
    return file.save()


def edited_footer() -> bytes:
    data = sound_file(True)
    return replaced(data, data.rindex(b"numparq version"), b"numpark")


def lost_length() -> bytes:
    file = opened()
    return replaced(file.data, first_page(file)[0], b"\xff\xff\xff\xff")


def changed_body(algorithm: str = "AES_GCM_V1") -> bytes:
    file = opened(algorithm=algorithm)
    place = first_page(file)[1] + 20
    return replaced(file.data, place, bytes([file.data[place] ^ 1]))


def repeated_nonce() -> bytes:
    file = opened()
    file.seal_metadata(0, L, file.metadata(0, L))
    return file.save(nonce=b"m" * 12)


def plain_levels(created_by: bytes | None = None) -> bytes:
    """Return a file whose first page of version 2 has its levels in front of the module, as parquet-java writes it."""
    file = opened(data_page_version="2.0", write_page_checksum=False)
    _, body, header = first_page(file, L)
    about, module_aad = header.data_page_header_v2, aad(file.file_aad, DATA_PAGE, 0, L, 0)
    levels = about.definition_levels_byte_length + about.repetition_levels_byte_length
    plaintext = open_gcm(FOOTER_KEY, file.data[body : body + header.compressed_page_size], module_aad)
    moved = plaintext[:levels] + seal_gcm(FOOTER_KEY, plaintext[levels:], module_aad, b"v" * 12)
    file.body = replaced(file.body, body, moved)
    file.footer.created_by = created_by or file.footer.created_by
    return file.save()


def longer_metadata() -> bytes:
    file = opened()
    module_aad = aad(file.file_aad, COLUMN_METADATA, 0, A)
    longer = to_bytes(file.metadata(0, A)) + b"\x15\x02" * 150  # which could be fields of the chunk
    chunk(file).encrypted_column_metadata = seal_gcm(COLUMN_KEY, longer, module_aad, b"l" * 12)
    return file.save()


Violation = tuple[Callable[[], bytes], set[str]]

# Check -> file, and other checks that it fails; and the keys, if not `keys()`.
VIOLATIONS: dict[str, Violation] = {
    "file-plain": (lambda: numparq.to_parquet(pd.DataFrame({"a": [1]})), set()),
    "encrypted-key": (wrong_path, set()),
    "encrypted-ordinal": (wrong_ordinal, {"group-ordinal"}),
    "encrypted-statistics": (visible_statistics, set()),
    "footer-signature": (edited_footer, set()),
    "module-length": (lost_length, set()),
    "module-tag": (changed_body, {"page-crc"}),
    "nonce-reuse": (repeated_nonce, set()),
    "page-levels-plain": (plain_levels, set()),
    "module-bytes": (longer_metadata, set()),
    "writer-levels": (partial(plain_levels, b"parquet-mr version 1.17.0 (build 1)"), set()),
    "writer-size-statistics": (
        partial(visible_statistics, "size_statistics", b"parquet-cpp-arrow version 26.0.0"),
        set(),
    ),
    "aad-prefix": (partial(sound_file, aad_prefix=b"other"), set()),
}
KEYS = {"aad-prefix": partial(keys, aad_prefix=b"lake")}
