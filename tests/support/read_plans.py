"""Read plans derived from others, as planning steps do it in place."""

from __future__ import annotations

from collections.abc import Mapping

from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.plan_builder import PlanBuilder
from numparq.plan.read_plan import ReadPlan
from numparq.plan.row_ranges import RowRanges


def _builder(plan: ReadPlan) -> PlanBuilder:
    return PlanBuilder(plan.columns, plan.row_groups, plan.changes)


def narrow(plan: ReadPlan, row_ranges: Mapping[int, RowRanges], level: str = "rows", reason: str = "") -> ReadPlan:
    """Return a plan without other rows of some row groups."""
    builder = _builder(plan)
    builder.narrow(row_ranges, level, reason)
    return builder.build()


def with_offset_indexes(plan: ReadPlan, pages: Mapping[tuple[int, int], ChunkPages]) -> ReadPlan:
    """Return a plan with the pages of some column chunks."""
    builder = _builder(plan)
    builder.set_pages(pages)
    return builder.build()
