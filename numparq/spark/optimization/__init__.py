"""Optimize datasets on Spark."""
