"""Python objects, read and built with the GIL."""
