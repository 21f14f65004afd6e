"""DataFrames taken apart for writing: the schema, the values of the leaves by ranges of rows, and the metadata."""

from .frame import TakenApart, take_apart

__all__ = ["TakenApart", "take_apart"]
