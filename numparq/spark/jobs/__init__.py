"""Batch jobs with pandas functions on Spark."""
