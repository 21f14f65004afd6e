"""Prune row groups and pages by statistics, Bloom filters, column indexes and dictionaries."""
