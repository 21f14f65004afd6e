"""Filter text by the rules of Spark's SQL."""
