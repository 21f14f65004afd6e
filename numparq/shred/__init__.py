"""DataFrames taken apart for writing: the schema, the values of the leaves by ranges of rows, and the metadata."""

from .frame import TakenApart, arrow_schema, take_apart

__all__ = ["TakenApart", "arrow_schema", "take_apart"]
