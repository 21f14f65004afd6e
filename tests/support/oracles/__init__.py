"""Slow, obvious encoders and decoders from the format's specification, independent of numparq.

Decoders raise `Damaged` for invalid input. Docstrings state choices that the specification leaves open.
"""


class Damaged(Exception):
    """The bytes violate the specification."""


class Inexact(Exception):
    """A value does not fit its target type."""
