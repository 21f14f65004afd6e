"""Data-skipping stores: Parquet tables that say which files of a dataset a query need not open."""
