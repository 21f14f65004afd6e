"""Public packages, and the classes whose members users see."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

# The public packages, as docs/index.md lists them.
PACKAGES = [
    "numparq",
    "numparq.cli",
    "numparq.dataset",
    "numparq.errors",
    "numparq.format",
    "numparq.keys.clients",
    "numparq.pandas",
    "numparq.skipping",
    "numparq.spark",
    "numparq.tools.profile",
    "numparq.tools.salvage",
    "numparq.tools.verify",
    "numparq.variant",
]
# Classes that users get from public functions, methods and properties.
RETURNED = [
    "numparq.expr.column.ColumnReference",
    "numparq.expr.expression.And",
    "numparq.expr.expression.ColumnPredicate",
    "numparq.expr.expression.Not",
    "numparq.expr.expression.Or",
    "numparq.expr.expression.OtherColumn",
    "numparq.file.column_statistics.ColumnStatistics",
    "numparq.format.geospatial.GeospatialColumn",
    "numparq.format.thrift.decode.Record",
    "numparq.io.source.Source",
    "numparq.plan.dataset_plan.DatasetPlan",
    "numparq.plan.read_plan.ReadPlan",
    "numparq.plan.row_group_plan.RowGroupPlan",
    "numparq.scan.stream.batches.Batches",
]


def public_objects() -> Iterator[tuple[str, Any]]:
    """Yield the public objects with their addresses, but those that need PySpark."""
    for package in PACKAGES:
        if package == "numparq.spark":
            continue
        module = importlib.import_module("numparq.format.variant" if package == "numparq.variant" else package)
        for name in getattr(module, "__all__", ()):
            yield f"{package}.{name}", getattr(module, name)
    errors = importlib.import_module("numparq.errors")
    for name, value in vars(errors).items():
        if inspect.isclass(value) and value.__module__ == errors.__name__ and not name.startswith("_"):
            yield f"numparq.errors.{name}", value


def public_classes() -> list[type]:
    """Return the classes of `public_objects`, and those that users get from them, each once."""
    public = [each for _, each in public_objects() if inspect.isclass(each)]
    parts = [address.rpartition(".") for address in RETURNED]
    return list(
        dict.fromkeys([*public, *(getattr(importlib.import_module(module), name) for module, _, name in parts)])
    )
