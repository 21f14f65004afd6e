"""Property: a read with a store equals the read without it, rows, order, columns and dtypes."""

from __future__ import annotations

import pytest

from support.random_stores import check_seed

WRITERS = ("numparq", "pyarrow")


@pytest.mark.parametrize("seed", range(6))
def test_reads_equal(tmp_path, seed):
    check_seed(seed, tmp_path, WRITERS, asks=5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_reads_equal(tmp_path, seed):
    check_seed(seed, tmp_path, WRITERS)


@pytest.mark.slow
def test_stores_skip_files(tmp_path):
    """The cases are no use if no file is skipped."""
    skipped = total = 0
    for seed in range(8):
        (tmp_path / str(seed)).mkdir()
        counts = check_seed(seed, tmp_path / str(seed), WRITERS)
        skipped, total = skipped + counts[0], total + counts[1]
    assert skipped > total / 10
