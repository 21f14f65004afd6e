"""Files built by hand, edited or invalid."""
