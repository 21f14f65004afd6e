"""Indexes of a data-skipping store: what a cell says of the values of one file."""
