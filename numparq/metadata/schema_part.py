"""The schema of a footer by itself: footers of files that were written alike have the same one, and share it.

What is made of a schema (names, leaves, types) then is made once, however many such files are read.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .layout import Layout, RecordLayout

__all__ = ["SchemaPart", "schema_part"]

_SHARED_BYTES = 64 << 10  # larger ones are not kept
_MOST_SHARED = 64


class SchemaPart:
    """The SchemaElements of a footer. Nothing changes it, or what is read of it.

    Parameters
    ----------
    wanted : Layout
        Of FileMetaData.
    records : int64 array, (elements, words)
        The records of the elements.
    content : bytes
        The bytes of the footer as far as strings of the schema are in them.

    Attributes
    ----------
    schema_records : int64 array, (elements, words)
        As given.
    schema_layout : RecordLayout
        How they are laid out.
    is_leaf : bool array
        Which elements hold values: those that have a physical type, and no children.
    num_leaves : int
        How many these are.
    is_shared : bool
        Whether it is kept, for all footers that have the same.
    """

    def __init__(self, wanted: Layout, records: np.ndarray, content: bytes, is_shared: bool) -> None:
        self.schema_records = records
        self.schema_layout: RecordLayout = wanted.record_of("schema")
        self.is_shared = is_shared
        self._content = content
        has_type = records[:, 0] & wanted.bit("schema.type") != 0
        self.is_leaf = has_type & (records[:, wanted.slot("schema.num_children")] <= 0)
        self.is_leaf[:1] = False  # the root
        self.num_leaves = int(np.count_nonzero(self.is_leaf))

    def text(self, position: int, length: int) -> str:
        """Give a string of the schema; bytes that are not UTF-8 are kept as lone surrogates."""
        return self.content(position, length).decode("utf-8", "surrogateescape")

    def content(self, position: int, length: int) -> bytes:
        """Give bytes of the schema, by their position in the footer; none for a position of -1."""
        return self._content[position : position + length] if position >= 0 else b""


def schema_part(wanted: Layout, records: np.ndarray, data: np.ndarray) -> SchemaPart:
    """Give the schema of a footer.

    Parameters
    ----------
    wanted : Layout
        Of FileMetaData.
    records : int64 array, (elements, words)
        The records of the SchemaElements.
    data : uint8 array
        The footer.

    Returns
    -------
    SchemaPart
        One and the same for footers in which both records and strings are equal, unless they are large.
    """
    # All strings lie in front of the end of the last element's. In a union the words of a string may be numbers: then
    # too much is kept, or compared, and nothing too little.
    last = records[-1].tolist() if len(records) else []
    content = data[: max((last[word] + last[word + 1] for word in _texts(wanted) if last), default=0)].tobytes()
    if records.nbytes + len(content) > _SHARED_BYTES:
        return SchemaPart(wanted, records, content, False)
    return _shared(wanted, records.tobytes(), content)


@lru_cache(maxsize=_MOST_SHARED)
def _shared(wanted: Layout, records: bytes, content: bytes) -> SchemaPart:
    words = wanted.record_of("schema").words
    return SchemaPart(wanted, np.frombuffer(records, np.int64).reshape(-1, words), content, True)


@lru_cache(maxsize=4)
def _texts(wanted: Layout) -> list[int]:
    """Give the words of a SchemaElement that are the position of a string."""

    def within(record: RecordLayout, first: int) -> list[int]:
        found = [first + slot.word for slot in record.slots.values() if slot.field.kind in ("binary", "string")]
        inner = [slot for slot in record.slots.values() if slot.field.kind == "struct" and slot.record is not None]
        return found + [word for slot in inner if slot.record for word in within(slot.record, first + slot.word)]

    return within(wanted.record_of("schema"), 0)
