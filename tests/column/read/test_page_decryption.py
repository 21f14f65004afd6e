"""Pages decrypted in place: both layouts of version 2, opened once, zeroed if they do not authenticate."""

from __future__ import annotations

import numpy as np
import pytest

from numparq.column.read.page_decryption import open_pages
from numparq.column.read.pages import PageFailure, Pages, stored_ends
from numparq.crypto.aad import ModuleId, ModuleType
from numparq.crypto.chunk_cipher import ChunkCipher
from numparq.crypto.key import Key
from numparq.crypto.seal import Sealer
from numparq.kernels import tables as t
from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE

KEY, FILE_AAD = Key(b"k" * 16), b"file"
PLACE = 3, 5  # row group and leaf


class Keys:
    """The one key, for any chunk."""

    def cipher(self, row_group, leaf):
        return ChunkCipher(KEY, FILE_AAD, row_group, leaf, False)


def seal(plaintext, page, kind=ModuleType.DATA_PAGE):
    return Sealer(KEY, FILE_AAD, False).seal_module(plaintext, ModuleId(kind, *PLACE, page))


def make_pages(*bodies):
    """Return pages of bodies: type, ordinal in the chunk, bytes of levels, and the body as stored."""
    raw = np.frombuffer(bytearray(b"".join(body for *_, body in bodies) + bytes(t.SLACK)), np.uint8)
    chunks = np.zeros((1, t.CHUNK_FIELDS), np.int64)
    chunks[0, [t.C_ROW_GROUP, t.C_LEAF, t.C_FIRST_IS_DICTIONARY]] = *PLACE, 1
    table = np.zeros((len(bodies), t.PAGE_FIELDS), np.int64)
    position = 0
    for row, (kind, ordinal, levels, body) in zip(table, bodies, strict=True):
        row[[t.P_TYPE, t.P_IN_CHUNK, t.P_DEFINITION_BYTES]] = kind, ordinal, levels
        row[[t.P_BODY, t.P_COMPRESSED, t.P_SEALED, t.P_CRC]] = position + 16, len(body) - 32, 32, 1
        position += len(body)
    return Pages(raw, chunks, table)


def body_of(pages, number):
    start, size = pages.pages[number, [t.P_BODY, t.P_COMPRESSED]].tolist()
    return pages.raw[start : start + size].tobytes()


def test_pages_are_opened_once():
    pages = make_pages(
        (DICTIONARY_PAGE, 0, 0, seal(b"entries", -1, ModuleType.DICTIONARY_PAGE)),
        (DATA_PAGE, 1, 0, seal(b"first", 0)),
        (DATA_PAGE_V2, 2, 6, seal(b"levelsvalues", 1)),
        (DATA_PAGE_V2, 3, 0, seal(b"", 2)),
    )
    ends = stored_ends(pages.pages, 32).tolist()
    for _ in range(2):
        open_pages(Keys(), pages)
        assert [body_of(pages, number) for number in range(4)] == [b"entries", b"first", b"levelsvalues", b""]
    assert not pages.pages[:, t.P_SEALED].any()
    assert (pages.pages[:, t.P_CRC] == -1).all()
    assert stored_ends(pages.pages, 32).tolist() == ends
    assert ends[-1] == len(pages.raw) - t.SLACK


def test_levels_in_front_of_the_module():
    """As parquet-java writes pages of version 2."""
    pages = make_pages((DATA_PAGE, 1, 0, seal(b"first", 0)), (DATA_PAGE_V2, 2, 6, b"LEVELS" + seal(b"values", 1)))
    open_pages(Keys(), pages)
    assert body_of(pages, 1) == b"LEVELSvalues"


@pytest.mark.parametrize("position", [16, 20, -1])
def test_failed_pages_are_zeroed(position):
    good, bad = seal(b"first", 0), bytearray(seal(b"secret text", 1))
    bad[position] ^= 1
    pages = make_pages((DATA_PAGE, 1, 0, good), (DATA_PAGE, 2, 0, bytes(bad)), (DATA_PAGE, 3, 0, seal(b"third", 2)))
    with pytest.raises(PageFailure) as caught:
        open_pages(Keys(), pages)
    assert caught.value.page == 1
    assert "data page did not authenticate" in str(caught.value.error)
    assert body_of(pages, 1) == bytes(11)
    assert pages.pages[:, t.P_SEALED].tolist() == [0, 32, 32]


@pytest.mark.parametrize("ordinal", [0, 1, 3])
def test_pages_of_other_ordinals_do_not_authenticate(ordinal):
    pages = make_pages((DATA_PAGE, ordinal, 0, seal(b"second", 1)))
    with pytest.raises(PageFailure):
        open_pages(Keys(), pages)


def test_lengths_are_checked():
    body = bytearray(seal(b"first", 0))
    body[0] += 1
    with pytest.raises(PageFailure) as caught:
        open_pages(Keys(), make_pages((DATA_PAGE, 1, 0, bytes(body))))
    assert "length" in str(caught.value.error)
