"""Scan on Spark: plan splits on the driver, read them in tasks."""
