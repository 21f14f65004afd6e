"""Discover a dataset: its files, their footers, and a snapshot of both."""
