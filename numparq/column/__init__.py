"""Column chunks: bytes -> pages -> column buffers."""
