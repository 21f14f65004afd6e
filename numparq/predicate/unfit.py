"""What is raised while a literal is looked at, and named by whoever knows the column."""

from __future__ import annotations


class Unfit(Exception):
    """A literal that cannot be compared with the values of a column; the text says why."""
