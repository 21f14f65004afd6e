"""Spark's types and the format's."""
