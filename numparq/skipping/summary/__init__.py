"""Summaries of column chunks: bounds, nulls, NaNs and distinct values, by footers, then dictionaries, then data."""
