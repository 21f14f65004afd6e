"""Types: Parquet types (physical, logical) to Arrow types, and these to NumPy, pandas and pyarrow."""
