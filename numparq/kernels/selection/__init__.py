"""Decoding of selected rows."""
