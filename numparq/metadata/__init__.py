"""The metadata of Parquet files: the IDL, records laid out by it, footers."""
