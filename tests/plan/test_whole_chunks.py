"""Column chunks as one page each."""

from __future__ import annotations

import pickle

import pytest

from numparq.errors import InvalidFileError
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.whole_chunks import WholeChunks


def test_each_chunk_is_one_page():
    (chunks,) = WholeChunks.of_row_groups([[100, 400]], [[400, 450]], [30])
    pages = (ChunkPages.unindexed(100, 400, 30), ChunkPages.unindexed(400, 450, 30))
    assert chunks == pages
    assert pages == chunks
    assert (hash(chunks), repr(chunks), [*chunks], len(chunks)) == (hash(pages), repr(pages), [*pages], 2)
    assert chunks[1] is chunks[1]
    assert chunks[:1] == pages[:1] != pages
    assert pickle.loads(pickle.dumps(chunks)) == pages
    assert (chunks.num_rows, chunks.num_bytes, chunks.largest) == (30, 350, 300)


def test_row_group_without_columns():
    (chunks,) = WholeChunks.of_row_groups([[]], [[]], [30])
    assert (chunks, chunks.num_bytes, chunks.largest) == ((), 0, 0)


def test_chunk_that_ends_before_it_begins():
    with pytest.raises(InvalidFileError, match="ends before it begins"):
        WholeChunks.of_row_groups([[100], [400]], [[400], [399]], [30, 30])
