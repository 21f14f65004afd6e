"""Datasets: many files read and written as one table; public names, lazily loaded."""
