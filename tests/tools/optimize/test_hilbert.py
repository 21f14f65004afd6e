"""The Hilbert curve: cells, quantiles, coordinates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from numparq.errors import SchemaError
from numparq.tools.optimize.hilbert import HilbertClustering, hilbert_positions, quantiles
from support.data.arrow_columns import TABLE

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 4), (2, 1), (2, 4), (3, 2), (4, 2), (5, 1)])
def test_curve_visits_each_cell_once_in_single_steps(dimensions, bits):
    points = np.array(list(itertools.product(range(1 << bits), repeat=dimensions)))
    positions = hilbert_positions([points[:, number] for number in range(dimensions)], bits)
    assert sorted(positions) == list(range(len(points)))
    steps = np.abs(np.diff(points[np.argsort(positions)], axis=0)).sum(axis=1)
    assert set(steps.tolist()) == {1}


def test_quantiles_divide_evenly():
    random = np.random.default_rng(1)
    values = pa.array(random.normal(size=40_000))
    clustering = HilbertClustering([quantiles(values, 1)])
    counts = np.bincount(clustering.positions([values]))
    assert len(counts) == 1 << 12
    assert counts.max() < 40


@pytest.mark.parametrize(
    "values",
    [
        [3, None, 1, 2, None],
        ["b", None, "a", "c" * 20, "", "b"],
        [0.5, float("nan"), None, -0.0, 0.0, float("-inf")],
        [True, None, False],
        [],
        [None, None],
    ],
    ids=str,
)
def test_positions_follow_value_order(values):
    array = pa.array(values)
    array = array.cast(pa.int64()) if pa.types.is_null(array.type) else array
    positions = HilbertClustering([quantiles(array, 1)]).positions([pa.chunked_array([array])]).tolist()

    def key(value):
        return (0,) if value is None else (2,) if value != value else (1, value)

    for one, other in itertools.product(range(len(values)), repeat=2):
        if key(values[one]) < key(values[other]) and values[one] is not None:
            assert positions[one] <= positions[other]
    assert all(position == 0 for position, value in zip(positions, values, strict=True) if value is None)


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.string_view(), pa.large_string()])
def test_strings_are_clustered_by_value(kind):
    array = pa.array(["b", "a", None, "c"])
    other = array.cast(kind) if kind != pa.dictionary(pa.int32(), pa.string()) else array.dictionary_encode()
    clustering = HilbertClustering([quantiles(other, 1)])
    assert clustering.positions([other]).tolist() == clustering.positions([array]).tolist() == [1, 0, 0, 2]


@pytest.mark.parametrize("name", [name for name in TABLE.column_names if not pa.types.is_nested(TABLE[name].type)])
def test_positions_of_all_types(name):
    if name in ("nothing", "view"):
        return
    positions = HilbertClustering([quantiles(TABLE[name], 1)]).positions([TABLE[name]])
    assert len(set(positions.tolist())) > 1


def test_curve_segments_are_narrow_in_all_columns():
    random = np.random.default_rng(2)
    columns = [pa.array(random.random(20_000)), pa.array([f"{n:06}" for n in random.integers(0, 10**6, 20_000)])]
    positions = HilbertClustering([quantiles(column, 2) for column in columns]).positions(columns)
    order = np.argsort(positions)
    for column in (columns[0].to_numpy(), np.array(columns[1].to_pylist()).astype(int) / 1e6):
        parts = np.array_split(column[order], 100)
        assert np.mean([part.max() - part.min() for part in parts]) < 0.2


def test_too_many_columns_raise():
    with pytest.raises(SchemaError, match="at most 62 columns"):
        HilbertClustering([pa.array([1])] * 63)
