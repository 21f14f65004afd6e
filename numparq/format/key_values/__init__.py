"""Key-value metadata of the footer: the keys of Arrow, pandas and Spark, and their encodings."""
