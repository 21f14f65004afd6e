"""Slow, obvious encoders and decoders, written from the format's specification; none of them uses numparq.

Damaged input makes a decoder raise `Damaged`. What the specification leaves open is settled in the docstrings.
"""


class Damaged(Exception):
    """The bytes are not what the specification says."""


class Inexact(Exception):
    """A value does not fit the type that it is to be converted to."""
