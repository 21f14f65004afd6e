"""Merge the schemas of many files, and map columns between dataset and file."""
