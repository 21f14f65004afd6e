"""Collections as rows: the elements of a list or map, one a row, beside the columns that they are within."""

from .rows import Explosion

__all__ = ["Explosion"]
