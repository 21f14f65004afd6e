"""Module types and the AAD of a module (Encryption.md), which ties it to its place in one file."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from numparq.errors import DecryptionError

MAX_ORDINAL = 32_767  # of row groups, leaf columns and data pages, stored in 16 bits


class ModuleType(IntEnum):
    """Type of a module, one byte of its AAD."""

    FOOTER = 0
    COLUMN_METADATA = 1
    DATA_PAGE = 2
    DICTIONARY_PAGE = 3
    DATA_PAGE_HEADER = 4
    DICTIONARY_PAGE_HEADER = 5
    COLUMN_INDEX = 6
    OFFSET_INDEX = 7
    BLOOM_HEADER = 8
    BLOOM_BITSET = 9

    @property
    def label(self) -> str:
        """Name for messages."""
        return self.name.lower().replace("_", " ")


class ModuleId(NamedTuple):
    """A module of a file: its type, and the ordinals of its row group, leaf column and data page; -1: it has none."""

    module_type: ModuleType
    row_group: int = -1
    leaf: int = -1
    page: int = -1


def module_aad(file_aad: bytes, module: ModuleId) -> bytes:
    """Return the AAD of a module; `file_aad` is the AAD prefix and `aad_file_unique`."""
    if max(module[1:]) > MAX_ORDINAL:
        raise DecryptionError(f"the ordinal {max(module[1:]):,} is above {MAX_ORDINAL:,}: ordinals have 16 bits")
    ordinals = [ordinal for ordinal in module[1:] if ordinal >= 0]
    return b"".join([file_aad, bytes([module.module_type]), *(number.to_bytes(2, "little") for number in ordinals)])
