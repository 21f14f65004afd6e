"""Read on Spark: plan splits, read them in tasks."""
