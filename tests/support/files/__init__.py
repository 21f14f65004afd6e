"""Files made by hand, edited or wrong."""
