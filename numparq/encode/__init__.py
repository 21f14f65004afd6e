"""One leaf of one row group, encoded: to a dictionary or not, to pages, compressed, with all that describes them."""
