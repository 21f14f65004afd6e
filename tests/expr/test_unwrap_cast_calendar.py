"""Key ranges of stored values against the values that they are read as, for each value near the edges."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.expr.sort_keys import key_domain
from numparq.expr.unwrap_cast import stored_ranges
from numparq.format.legacy_calendar import Rebase
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import INT32, INT64, INT96
from numparq.format.schema import Leaf
from support.oracles.legacy_calendar import rebase_day, rebase_second

HOUR = 3600
PARIS, MANILA = ("Europe/Paris", HOUR), ("Asia/Manila", 8 * HOUR)
DAYS = Leaf(0, 0, ("x",), INT32, None, LogicalType("DATE"), 1, 0, rebase=Rebase("D"))


def leaf_of_instants(unit, zone):
    if unit == "ns":
        return Leaf(0, 0, ("x",), INT96, None, None, 1, 0, rebase=Rebase(unit, zone))
    logical = LogicalType("TIMESTAMP", unit={"ms": "MILLIS", "us": "MICROS"}[unit], utc=True)
    return Leaf(0, 0, ("x",), INT64, None, logical, 1, 0, rebase=Rebase(unit, zone))


def check(leaf, reads_as, keys, edges):
    """Whether a key is in the stored ranges exactly if what it is read as is in the ranges."""
    domain = key_domain(leaf)
    for low, high in [(edges[0], edges[-1]), (domain.low, edges[0]), (edges[0], domain.high), (edges[0], edges[0] + 1)]:
        if low < high:
            stored = stored_ranges(((low, high),), leaf, domain)
            found = [any(first <= key < end for first, end in stored) for key in keys]
            assert found == [low <= reads_as(key) < high for key in keys], (low, high)


@given(st.lists(st.integers(-800_000, -141_000), min_size=1, max_size=2), st.integers(-30, 30))
def test_days(edges, by):
    near = [int(start) for start in Rebase("D").table.starts[-14:]]
    keys = [start + at for start in near for at in (-20, -11, -1, 0, 1, 9)] + [edge + by for edge in edges]
    check(DAYS, rebase_day, keys, sorted([*edges, near[len(edges) % 14] + by]))


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [PARIS, MANILA])
@given(at=st.integers(0, 17), by=st.integers(-90_000, 90_000), step=st.integers(-90_000, 90_000))
def test_instants(unit, zone, at, by, step):
    leaf, per = leaf_of_instants(unit, zone[0]), {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    near = [int(start) for start in leaf.rebase.table.starts if start > -719_000 * 86_400]
    seconds = [start + some for start in near for some in (-86_400, -3600, -1, 0, 1, 3599, 86_399, by, step, by + step)]
    edge = near[at % len(near)]
    keys = [second * per + extra for second in seconds for extra in (0, per - 1)]

    def reads_as(key):
        return rebase_second(key // per, *zone) * per + key % per

    check(leaf, reads_as, keys, sorted([(edge + by) * per, (edge + step) * per + 1]))


def test_all_keys_stay_all_keys():
    for leaf in (DAYS, leaf_of_instants("us", "UTC"), leaf_of_instants("ns", "UTC")):
        assert stored_ranges(key_domain(leaf).all_keys, leaf, key_domain(leaf)) == key_domain(leaf).all_keys


def test_other_columns_are_unchanged():
    leaf = replace(DAYS, rebase=None)
    assert stored_ranges(((-700_000, -600_000),), leaf, key_domain(leaf)) == ((-700_000, -600_000),)
