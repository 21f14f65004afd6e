"""Tests of pandas' Parquet module that fail with numparq, and why."""

from __future__ import annotations

# Tests that fail, with their reasons. That they still do is a test as well.
FAILURES = {
    "TestParquetPyArrow::test_duplicate_columns": (
        "wants an error for labels that are there twice; numparq writes them, and restores them"
    ),
    "TestParquetPyArrow::test_unsupported": (
        "wants an exception of pyarrow's for a column of str, int and float; numparq raises SchemaError"
    ),
    "TestParquetPyArrow::test_to_parquet_unwritable_path_keeps_existing_file": (
        "wants pyarrow's words in the PermissionError; the file stays as it was"
    ),
}

# Tests that are skipped, by what the reason that is given for it says: the environment lacks something.
SKIPS = (
    "is not installed",
    "could not import",  # moto and s3fs for those with S3; pytz, fastparquet
    "need --run-high-memory",
    "Running as sudo",
    "float16 works on",  # pandas 3.0, of an error of old versions of pyarrow
)
