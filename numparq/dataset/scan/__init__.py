"""Scan the files of a dataset into one frame."""
