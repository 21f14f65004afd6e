"""BYTE_STREAM_SPLIT, encoded."""
