"""Datasets: many Parquet files read and written as one table."""
