"""Spark's Python data source "numparq"."""
