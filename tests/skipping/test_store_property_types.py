"""Property: reads with a store over values and types that indexes get wrong easily."""

from __future__ import annotations

import pytest

from support.mixed_stores import check_seed


@pytest.mark.parametrize("seed", range(3))
def test_reads_equal(tmp_path, seed):
    assert check_seed(seed, tmp_path, 25) > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_reads_equal(tmp_path, seed):
    check_seed(seed, tmp_path, 80)
