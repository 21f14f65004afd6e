"""Rewrite datasets on Spark."""
