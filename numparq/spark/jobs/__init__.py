"""Jobs over pandas frames on Spark."""
