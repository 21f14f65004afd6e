"""Read plans derived from others, as planning steps do it in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.plan_builder import PlanBuilder
from numparq.plan.read_plan import ReadPlan
from numparq.plan.row_ranges import RowRanges


def narrow(plan: ReadPlan, row_ranges: Mapping[int, RowRanges], level: str = "rows", reason: str = "") -> ReadPlan:
    """Return a plan without other rows of some row groups."""
    builder = PlanBuilder(plan.columns, plan.row_groups)
    builder.narrow(row_ranges, level, reason)
    return _add_changes(plan, builder.build())


def with_offset_indexes(plan: ReadPlan, pages: Mapping[tuple[int, int], ChunkPages]) -> ReadPlan:
    """Return a plan with the pages of some column chunks."""
    builder = PlanBuilder(plan.columns, plan.row_groups)
    builder.set_pages(pages)
    return _add_changes(plan, builder.build())


def _add_changes(plan: ReadPlan, narrowed: ReadPlan) -> ReadPlan:
    """Return a plan with the changes of the plan that it comes from before its own."""
    return replace(narrowed, changes=(*plan.changes, *narrowed.changes))
