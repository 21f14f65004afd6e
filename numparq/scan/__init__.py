"""Scan of one file: bind, plan, select rows, decode, return a DataFrame or batches."""
