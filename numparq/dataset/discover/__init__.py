"""Discover a dataset: its files, their footers, what is known of them."""
