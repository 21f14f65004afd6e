"""Public functions that read and write: `read_parquet` and `to_parquet`."""
