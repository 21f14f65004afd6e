"""Nested columns to leaf columns."""
