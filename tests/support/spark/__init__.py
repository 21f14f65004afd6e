"""Programs and tables for the Spark tests."""
