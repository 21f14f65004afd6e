"""Split-block Bloom filters."""
