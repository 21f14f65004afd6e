"""Key-value metadata of the footer: Arrow, pandas, Spark."""
