"""The Parquet format: one module or package for each chapter of the specification."""
