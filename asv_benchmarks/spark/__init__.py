"""numparq on Spark against Spark's own reader."""
