"""Streaming scan: row units decoded within a memory limit, returned as batches."""
