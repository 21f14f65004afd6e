"""Partition columns: directory names, types, values and predicates."""
