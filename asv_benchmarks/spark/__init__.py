"""numparq on Spark beside Spark's own reader."""
