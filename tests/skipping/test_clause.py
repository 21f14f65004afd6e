"""A filter against cells: which files each kind of index rules out, and what keeps them."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from numparq import col
from support.store_parts import bounds, lists, skipped, write_part

NAN = math.nan
x, y = col("x"), col("y")


def check(tmp_path, index, cells, asked, **options):
    """Check the files that each filter skips; the index is on x."""
    write_part(tmp_path, {"c": (index, "x")}, {"c": cells}, **options)
    for filters, wanted in asked:
        assert skipped(tmp_path, filters) == wanted, filters


def test_bounds_of_integers(tmp_path):
    cells = bounds(pa.int64(), [(1, 5), (5, 5), (7, 9), (None, None)])
    check(
        tmp_path,
        "minmax",
        cells,
        [
            (x == 5, "cd"),
            (x == 6, "abcd"),
            (x.isin([1, 8]), "bd"),
            (x != 5, "bd"),
            (x.not_in([5]), "bd"),
            (x.not_in([7, 8, 9]), "cd"),  # all integers between are excluded
            (x < 5, "bcd"),
            (x <= 5, "cd"),
            (x > 5, "abd"),
            (x >= 7, "abd"),
            (~(x >= 7), "cd"),
            (x.between(6, 6), "abcd"),
            (x.is_null(), ""),
            (x.is_not_null(), "d"),
            (~x.is_nan(), "d"),
            (x.is_nan(), "abcd"),
            ((x == 5) & (y == 1), "cd"),
            ((x == 5) | (y == 1), ""),
            ((x == 5) | (x == 8), "d"),
            ((x > 5) & (x < 7), "abcd"),
            (~((x == 5) & (x == 6)), "d"),
            (x == 5.5, "abcd"),
            (x > Decimal("8.5"), "abd"),
            (y == 1, ""),
            (x == "text", ""),  # cannot be compared: the read raises
            (x.contains(1), ""),
            (col("X") == 5, "cd"),  # names regardless of case
            (col(("x",)) == 5, "cd"),
            (col("x.z") == 5, ""),
        ],
    )


def test_cells_that_say_nothing(tmp_path):
    cells = bounds(pa.int64(), [None, (1, None), (None, 5), (5, 1), (1, 5)])
    check(tmp_path, "minmax", cells, [(x == 9, "e"), (x.is_not_null(), ""), (x != 3, "")])


def test_bounds_of_floats(tmp_path):
    cells = bounds(pa.float64(), [(1.0, 5.0), (1.0, NAN), (NAN, NAN), (-0.0, -0.0), (5.0, 1.0), (None, None)])
    check(
        tmp_path,
        "minmax",
        cells,
        [
            (x == 9, "adf"),  # a NaN as the greatest value hides it
            (x < 1, "abf"),
            (x == 0, "abf"),
            (x != 0, "df"),
            (x.is_nan(), "adf"),
            (~x.is_nan(), "f"),
            (~(x > 9), "f"),
            (~(x < 9), "adf"),  # NaNs satisfy it
            (x == NAN, "abdf"),  # nothing equals NaN, but the cells c and e say nothing
        ],
    )


def test_singles_are_compared_rounded_and_exactly(tmp_path):
    """A dataset of singles rounds the literal, one that has doubles too does not."""
    tenth = float(np.float32(0.1))
    cells = bounds(pa.float32(), [(tenth, tenth), (0.5, 0.5), (-1, 0.099)])
    check(
        tmp_path,
        "minmax",
        cells,
        [
            (x == 0.1, "bc"),
            (x > 0.1, "c"),
            (x < 0.1, "ab"),
            (x != 0.1, ""),
            (x == 0.5, "ac"),
            (x != 0.5, "b"),
            ("x = 0.1", "bc"),
        ],
    )


def test_integers_in_datasets_of_floats_or_decimals(tmp_path):
    cells = bounds(pa.int16(), [(32767, 32767), (1, 2)])
    check(tmp_path, "minmax", cells, [(x >= 32767.0001, "b"), (x > 32767.5, "ab"), (x > 40000.5, "ab")])


def test_bounds_in_javas_order_of_strings(tmp_path):
    """UTF-16 units order U+10000 and above before U+E000 to U+FFFF."""
    cells = bounds(pa.string(), [("a", "z"), ("a", "a\ue000"), ("b\U00010000", "c"), ("\U00010000", "\uffff")])
    check(
        tmp_path,
        "minmax",
        cells,
        [
            (x == "a\U00010000", "cd"),  # beyond b's bound in bytes, not in Java's order
            (x == "b\ue000", "bd"),
            (x == "b\U00010000", "bd"),
            (x == "zz", "abcd"),
            (x.startswith("b"), "bd"),
            (x.like("a%"), "cd"),
            (x.like("%z"), ""),
            (~x.startswith("q"), ""),
            (x == "\U00020000", "abc"),
        ],
    )


def test_bounds_of_prefixes(tmp_path):
    cells = bounds(pa.string(), [("aa", "ab"), ("b", "b"), ("", "a")])
    check(
        tmp_path,
        "minmax",
        cells,
        [(~x.startswith("a"), "a"), (x.startswith("a"), "b"), (~x.like("a%b"), ""), (x.like("b_"), "ac")],
    )


def test_value_lists(tmp_path):
    cells = lists(pa.string(), [["a", "b"], ["b"], [], None, [None], ["ab", None]])
    check(
        tmp_path,
        "valuelist",
        cells,
        [
            (x == "a", "bcef"),
            (x != "b", "bce"),
            (x.not_in(["a", "b"]), "abce"),
            (x.isin(["ab", "q"]), "abce"),
            (x.startswith("a"), "bce"),
            (~x.startswith("a"), "cef"),
            (x.like("%b"), "ce"),
            (~x.like("%b"), "bcef"),
            (x < "b", "bce"),
            (x.is_null(), ""),
            (x.is_not_null(), "ce"),
            (x.contains("a"), ""),
            (x == 5, ""),
        ],
    )


def test_value_lists_of_floats(tmp_path):
    cells = lists(pa.float64(), [[0.0, 1.0], [-0.0], [NAN], [NAN, 2.0]])
    check(
        tmp_path,
        "valuelist",
        cells,
        [
            (x == 0, "cd"),  # one zero stands for both
            (x != 0, "b"),
            (x < 0, "abcd"),
            (x.is_nan(), "ab"),
            (~x.is_nan(), "c"),
            (~(x > 1), ""),
            (~(x < 1), "b"),
            (x.between(1.5, 1.7), "abcd"),
        ],
    )


def test_ranges_are_tested_together(tmp_path):
    cells = lists(pa.int64(), [[1, 20], [10]])
    check(tmp_path, "valuelist", cells, [((x > 5) & (x < 15), "a"), ((x > 5) | (x < 15), "")])


def test_two_columns(tmp_path):
    cells = {
        "c": bounds(pa.int64(), [(1, 5), (6, 9), None, (1, 2)]),
        "d": bounds(pa.float64(), [(5, 7), (1, 5), (1, 2), (3, NAN)]),
    }
    write_part(tmp_path, {"c": ("minmax", "x"), "d": ("minmax", "y")}, cells)
    assert skipped(tmp_path, x < y) == "b"
    assert skipped(tmp_path, y < x) == "ad"  # a NaN is less than nothing
    assert skipped(tmp_path, x == y) == "bd"
    assert skipped(tmp_path, ~(x <= y)) == "a"
    assert skipped(tmp_path, x < col("z")) == ""


def test_instants(tmp_path):
    """A literal without a zone may mean any zone's time."""
    noon = datetime.datetime(2024, 1, 1, 12)
    later = [(noon + datetime.timedelta(days=days),) * 2 for days in (0, 3)]
    cells = bounds(pa.timestamp("us"), later)
    aware = noon.replace(tzinfo=datetime.UTC)
    check(
        tmp_path,
        "minmax",
        cells,
        [
            (x == aware, "b"),
            (x > aware, "a"),
            (x == noon, "b"),
            (x > noon, ""),
            (x > "2024-01-03", "a"),
            (x > "2024-01-03T00:00Z", "a"),
            (x != noon, ""),
            (x.isin([noon, aware]), ""),
            (x == datetime.date(2024, 1, 4), "a"),
        ],
        use_deprecated_int96_timestamps=True,
    )


@pytest.mark.parametrize(("name", "wanted"), [("a.parquet", "b"), ("a.csv", "ab"), ("a.CSV", "b"), ("a.csv.gz", "b")])
def test_bounds_from_footers(tmp_path, name, wanted):
    """Xskipper takes them from footers if all indexes are of numbers: floats may hide NaNs, no bounds mean nothing."""
    names = [f"/data/{name}#1", "/data/b.txt#1"]
    write_part(tmp_path, {"c": ("minmax", "x")}, {"c": bounds(pa.float64(), [(1, 2)] * 2)}, names)
    assert skipped(tmp_path, x == 9) == wanted
    nulls = bounds(pa.int64(), [(None, None)] * 2)
    write_part(tmp_path / "i", {"c": ("minmax", "x")}, {"c": nulls}, names)
    assert skipped(tmp_path / "i", x == 9) == wanted
    both = {"c": nulls, "d": lists(pa.string(), [["a"]] * 2)}
    write_part(tmp_path / "v", {"c": ("minmax", "x"), "d": ("valuelist", "y")}, both, names)
    assert skipped(tmp_path / "v", x == 9) == "ab"


def test_all_rows_of_an_id_decide(tmp_path):
    names = ["/data/a.csv#1", "/data/a.csv#1", "/data/b.csv#1", None]
    write_part(tmp_path, {"c": ("minmax", "x")}, {"c": bounds(pa.int64(), [(1, 1), (2, 2), (1, 1), (1, 1)])}, names)
    assert skipped(tmp_path, x == 2) == "b"
    assert skipped(tmp_path, x == 3) == "ab"
    more = bounds(pa.int64(), [(2, 2)])
    write_part(tmp_path, {"c": ("minmax", "x")}, {"c": more}, ["/data/b.csv#1"], name="part-1")
    assert skipped(tmp_path, x == 2) == ""


def test_unknown_indexes_and_other_columns(tmp_path):
    cells = {"c": lists(pa.string(), [["a"]]), "d": bounds(pa.int64(), [(1, 2)]), "e": pa.array([1], pa.int64())}
    write_part(tmp_path, {"c": ("regexvaluelist", "x"), "d": ("valuelist", "y"), "e": ("minmax", "z")}, cells)
    assert skipped(tmp_path, (x == "q") & (y == 9) & (col("z") == 9)) == ""
    strange = {"c": pa.array([{"min": 1, "max": 2.0}]), "d": lists(pa.list_(pa.int64()), [[[1]]])}
    write_part(tmp_path / "s", {"c": ("minmax", "x"), "d": ("valuelist", "y")}, strange)
    assert skipped(tmp_path / "s", (x == 9) & (y == 9)) == ""


def test_constants(tmp_path):
    cells = bounds(pa.int64(), [(1, 2)])
    write_part(tmp_path, {"c": ("minmax", "x")}, {"c": cells})
    assert skipped(tmp_path, x.isin([])) == "a"
    assert skipped(tmp_path, x.not_in([])) == ""
