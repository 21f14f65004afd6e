"""Schemas of Spark and of Parquet, mapped both ways."""
