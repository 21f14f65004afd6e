"""Prune files and row groups of a dataset."""
