"""DELTA_BINARY_PACKED, decoded."""
