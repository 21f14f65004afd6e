"""Programs and tables of the tests of Spark."""
