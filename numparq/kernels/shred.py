"""Nested values to definition and repetition levels."""
