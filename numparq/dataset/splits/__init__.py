"""Splits: a table divided for separate processes, free of any engine."""
