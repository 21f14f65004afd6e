"""Read plans: the cuts of each step and the rest add up; as text and as HTML."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.io.coalesce import Coalescing
from numparq.plan.chunk_pages import DICTIONARY_PAGE_ORDINAL, ChunkPages
from numparq.plan.plan_change import PlanCut
from numparq.plan.read_plan import ReadPlan
from numparq.plan.row_group_plan import RowGroupPlan
from numparq.plan.row_ranges import RowRanges
from support.read_plans import narrow, with_offset_indexes

# Two row groups of 30 rows; column a has three pages and no dictionary, column b two pages and one.
WHOLE = ReadPlan.read_all(["a", "b"], [30, 30], [[4, 400], [700, 1000]], [[400, 700], [1000, 1300]])
A0 = ChunkPages(4, 400, 30, [[4, 196, 0], [200, 100, 10], [300, 100, 20]])
B0 = ChunkPages(400, 700, 30, [[450, 50, 0], [500, 200, 15]])


def example():
    plan = narrow(WHOLE, {1: RowRanges()}, "statistics", "a < 5 & b == '<&>'")
    plan = with_offset_indexes(plan, {(0, 0): A0, (0, 1): B0})
    return narrow(plan, {0: A0.rows_in_pages([1])}, "column index", "a < 5")


def test_plan_without_cuts_reads_all_pages():
    assert (WHOLE.num_rows, WHOLE.num_bytes, WHOLE.cuts) == (60, 1296, ())
    assert WHOLE.reads() == [
        "row group 0, column a: all pages (396 bytes)",
        "row group 0, column b: all pages (300 bytes)",
        "row group 1, column a: all pages (300 bytes)",
        "row group 1, column b: all pages (300 bytes)",
    ]


def test_cuts_by_statistics_and_column_index():
    plan = example()
    assert plan.cuts == (
        PlanCut("statistics", "a < 5 & b == '<&>'", 30, 600),
        PlanCut("column index", "a < 5", 20, 296),
    )
    assert plan[0].rows == RowRanges([(10, 20)])
    assert not plan[1].rows
    assert plan.byte_ranges().tolist() == [
        [200, 300, 0, 0, 1],
        [400, 450, 0, 1, DICTIONARY_PAGE_ORDINAL],
        [450, 500, 0, 1, 0],
        [500, 700, 0, 1, 1],
    ]
    assert plan.reads() == [
        "row group 0, column a: page 1 (100 bytes)",
        "row group 0, column b: dictionary (50 bytes)",
        "row group 0, column b: page 0 (50 bytes)",
        "row group 0, column b: page 1 (200 bytes)",
    ]
    assert narrow(plan, {0: RowRanges([(12, 13)])}).cuts[-1] == PlanCut("rows", "", 9, 200)


def test_one_row_is_pruned():
    plan = narrow(WHOLE, {0: RowRanges([(0, 29)]), 1: RowRanges([(1, 2)])})
    assert [group.rows.count for group in plan.left] == [29, 1]
    assert plan.cuts == (PlanCut("rows", "", 30, 0),)


def test_offset_index_added_after_rows_are_narrowed():
    late = with_offset_indexes(narrow(WHOLE, {0: RowRanges([(12, 13)]), 1: RowRanges()}), {(0, 0): A0, (0, 1): B0})
    assert late.cuts == (PlanCut("rows", "", 59, 600), PlanCut("offset index", "pages without selected rows", 0, 496))
    assert late.row_groups == narrow(example(), {0: RowRanges([(12, 13)])}).row_groups


def test_equality_hash_and_immutability():
    assert example() == example()
    assert hash(example()) == hash(example())
    assert example() != WHOLE
    plan = example()
    assert narrow(plan, {0: RowRanges.all(30)}) == plan == narrow(plan, {})
    with pytest.raises(AttributeError):
        plan.columns = ()


def test_byte_ranges_are_coalesced():
    found = example().fetches(Coalescing(50, 1000))
    assert found.requests.tolist() == [[200, 300], [400, 700]]
    assert found.offset_in_request.tolist() == [0, 0, 50, 100]
    assert narrow(WHOLE, {0: RowRanges(), 1: RowRanges()}).fetches().requests.shape == (0, 2)


@st.composite
def plans(draw):
    """Draw a plan of some row groups, and offset indexes for its chunks."""
    num_columns, position, bounds, pages, counts = draw(st.integers(1, 3)), 4, [], {}, []
    for group in range(draw(st.integers(1, 3))):
        counts.append(draw(st.integers(0, 12)))
        for column in range(num_columns):
            start = position
            firsts = sorted({0, *draw(st.lists(st.integers(0, counts[-1]), max_size=4))})
            position += draw(st.sampled_from([0, 7]))
            locations = []
            for first in firsts:
                locations.append([position, draw(st.integers(1, 20)), first])
                position += locations[-1][1]
            bounds.append((start, position))
            pages[group, column] = ChunkPages(start, position, counts[-1], locations)
    shaped = np.array(bounds).reshape(len(counts), num_columns, 2)
    columns = [f"c{column}" for column in range(num_columns)]
    return ReadPlan.read_all(columns, counts, shaped[..., 0], shaped[..., 1]), pages


@given(plans(), st.data())
def test_cuts_and_remaining_rows_and_bytes_add_up(drawn, data):
    plan, pages = drawn
    whole = plan
    rows = {group.ordinal: set(range(group.num_rows)) for group in plan}
    for _ in range(data.draw(st.integers(0, 4))):
        if pages and data.draw(st.booleans()):
            plan = with_offset_indexes(
                plan, {key: pages[key] for key in data.draw(st.sets(st.sampled_from(sorted(pages))))}
            )
            continue
        ordinals = data.draw(st.sets(st.sampled_from(sorted(rows))))
        kept = {ordinal: data.draw(st.sets(st.integers(0, 12))) for ordinal in ordinals}
        plan = narrow(plan, {ordinal: RowRanges.from_indices(list(found)) for ordinal, found in kept.items()})
        rows |= {ordinal: rows[ordinal] & found for ordinal, found in kept.items()}
    assert {group.ordinal: set(group.rows.indices().tolist()) for group in plan} == rows
    assert plan.num_rows + sum(cut.num_rows for cut in plan.cuts) == whole.num_rows
    assert plan.num_bytes + sum(cut.num_bytes for cut in plan.cuts) == whole.num_bytes
    assert plan.num_bytes == sum(stop - start for start, stop, *_ in plan.byte_ranges().tolist())

    for start, stop, group, column, page in plan.byte_ranges().tolist():
        chunk = plan[group].chunks[column]
        assert chunk.start <= start < stop <= chunk.end
        if page != DICTIONARY_PAGE_ORDINAL:
            assert plan[group].rows & chunk.rows_in_pages([page])
    # Every selected row lies in a page that is read, in each column.
    for group in plan.left:
        for column, chunk in enumerate(group.chunks):
            assert group.rows.is_subset(chunk.rows_in_pages(group.pages_with_rows(column)))
    ElementTree.fromstring(plan._repr_html_())
    assert plan.explain()


def test_explain_text():
    assert example().explain().splitlines() == [
        "2 columns, 10 of 60 rows, 400 of 1,296 bytes",
        "pruned by",
        "  statistics    30 rows  600 bytes  a < 5 & b == '<&>'",
        "  column index  20 rows  296 bytes  a < 5",
        "read from 1 of 2 row groups",
        "  row group 0: 10 of 30 rows in 1 range; a: 1 of 3 pages; b: 2 of 2 pages",
    ]
    assert repr(example()) == "<ReadPlan: 2 columns, 10 of 60 rows, 400 of 1,296 bytes>"
    many = ReadPlan.read_all([f"c{n}" for n in range(9)], [1] * 23, *(np.full((23, 9), n) for n in (4, 5)))
    lines = many.explain().splitlines()
    assert lines[-1] == "  and 3 more row groups"
    assert len(lines) == 23
    assert lines[2] == "  row group 0: the row; c0, c1, c2, c3, c4, c5: all pages; 3 more columns"
    apart = narrow(WHOLE, {0: RowRanges([(0, 1), (20, 21)]), 1: RowRanges()})
    assert apart.explain().endswith("  row group 0: 2 of 30 rows in 2 ranges; a, b: all pages")
    assert WHOLE.explain().endswith("  row group 1: all 30 rows; a, b: all pages")


def test_html_picture():
    found = ElementTree.fromstring(example()._repr_html_())
    titles = [title.text for title in found.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["10 rows", "a: 100 of 696 bytes", "b: 300 of 600 bytes"]
    filled = [path.get("d") for path in found.iter("{http://www.w3.org/2000/svg}path") if path.get("fill")]
    assert filled == ["M270 0h120v12h-120z", "M270 18h120v12h-120z", "M150 36h360v12h-360z"]
    assert [cell.text for cell in found.iter("td")][:4] == ["statistics", "30", "600", "a < 5 & b == '<&>'"]


def test_html_picture_size_is_bounded():
    num_pages = 100_000
    first = np.arange(num_pages, dtype=np.int64)
    chunk = ChunkPages(4, 4 + num_pages, num_pages, np.stack([first + 4, np.ones_like(first), first], axis=1))
    plan = with_offset_indexes(ReadPlan.read_all(["<x>"], [num_pages], [[4]], [[4 + num_pages]]), {(0, 0): chunk})
    picture = narrow(plan, {0: RowRanges.from_indices(first[::2])})._repr_html_()
    assert len(picture) < 3_000
    assert "&lt;x&gt;" in picture
    wide = ReadPlan.read_all([f"c{n}" for n in range(99)], [1], np.full((1, 99), 4), np.full((1, 99), 5))
    assert "and 59 more columns" in wide._repr_html_()
    assert "<svg" not in ReadPlan.read_all(["a"], [], np.empty((0, 1)), np.empty((0, 1)))._repr_html_()


def test_invalid_plans_are_refused():
    with pytest.raises(ValueError, match="no row group 7"):
        narrow(WHOLE, {7: RowRanges()})
    with pytest.raises(KeyError, match="row group 7"):
        WHOLE[7]
    with pytest.raises(ValueError, match="do not belong to column 'a' in row group 1"):
        with_offset_indexes(WHOLE, {(1, 0): A0})
    for end, rows in ((401, 30), (400, 29)):
        other = ChunkPages(4, end, rows, [[4, 196, 0], [200, 100, 10], [300, end - 300, 20]])
        with pytest.raises(ValueError, match="do not belong to column 'a' in row group 0"):
            with_offset_indexes(WHOLE, {(0, 0): other})
    with pytest.raises(ValueError, match="30 rows"):
        ReadPlan((), (RowGroupPlan(0, 30, RowRanges.all(31), ()),))
    with pytest.raises(ValueError, match="occurs twice"):
        ReadPlan((), (RowGroupPlan(0, 0, RowRanges(), ()),) * 2)
    with pytest.raises(ValueError, match="does not have 1 column chunk,"):
        ReadPlan(("a",), (RowGroupPlan(0, 0, RowRanges(), ()),))


def test_cuts_are_counted_lazily():
    assert narrow(WHOLE, {group.ordinal: RowRanges.all(group.num_rows) for group in WHOLE}, "x") == WHOLE
    plan = narrow(narrow(WHOLE, {0: RowRanges([(3, 5)])}, "one"), {0: RowRanges(), 1: RowRanges()}, "two")
    counted = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowGroupPlan, "num_bytes", property(lambda group: counted.append(group) or 7))
        assert narrow(plan, {0: RowRanges()}, "three").changes == plan.changes
        assert not counted
        assert [(cut.level, cut.num_bytes) for cut in narrow(WHOLE, {0: RowRanges([(3, 5)])}, "one").cuts] == [
            ("one", 0)
        ]
        assert len(counted) == 2
    assert [(cut.level, cut.num_rows) for cut in plan.cuts] == [
        ("one", WHOLE[0].num_rows - 2),
        ("two", 2 + WHOLE[1].num_rows),
    ]
    assert plan.cuts == plan.cuts


def test_intersection_of_one_range_with_several():
    several, one = RowRanges([(0, 5), (10, 30), (40, 50)]), RowRanges([(3, 45)])
    for left in (several & one, one & several):
        assert left == RowRanges([(3, 5), (10, 30), (40, 45)])
    assert (several & RowRanges.all(50)) is several
    assert (RowRanges.all(50) & several) is several
    assert not (several & RowRanges([(5, 10)]))
    assert (RowRanges([(12, 14)]) & several) == RowRanges([(12, 14)])
