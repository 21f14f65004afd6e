"""Leaf columns to nested columns."""
