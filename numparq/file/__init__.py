"""Parquet files: read, write, append."""
