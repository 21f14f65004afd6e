"""Check the values of VARIANT columns (VariantEncoding.md, VariantShredding.md) by reading them."""

from __future__ import annotations

from typing import Any

from numparq.column.nested.nested_type import NestedType, is_variant
from numparq.column.projection import select_columns
from numparq.errors import LimitError, ParquetError, UnsupportedError
from numparq.file.reader import ParquetFile
from numparq.format.schema import Leaf
from numparq.io.source import Source

from .deviations import Findings, Location

__all__ = ["check_variant_values"]


def check_variant_values(source: Source, metadata: dict[str, Any], findings: Findings) -> None:
    """Read the VARIANT columns of a file that has no errors so far and no external column chunks."""
    if findings.count("error") or not any("VARIANT" in (one.get("logicalType") or {}) for one in metadata["schema"]):
        return
    if any(chunk.get("file_path") for group in metadata["row_groups"] for chunk in group["columns"]):
        return
    file = ParquetFile(source)  # not closed: the source is the caller's
    for column in select_columns(file.schema, None):
        if isinstance(column, Leaf) or not _has_variants(column.full_type):
            continue
        for row_group in range(file.num_row_groups):
            location = Location(row_group, column.name)
            try:
                file.read([column.name], row_groups=[row_group])
            except (UnsupportedError, LimitError) as error:
                findings.add("not-checked", error.message, location)
            except ParquetError as error:
                findings.add("variant-values", error.message, location)


def _has_variants(node: NestedType) -> bool:
    return is_variant(node) or any(map(_has_variants, node.children))
