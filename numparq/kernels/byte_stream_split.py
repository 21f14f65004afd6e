"""BYTE_STREAM_SPLIT, decoded."""
