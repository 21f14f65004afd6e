"""DELTA_BINARY_PACKED, encoded."""
