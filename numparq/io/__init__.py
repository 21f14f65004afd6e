"""Sources and sinks of bytes, byte ranges, prefetching."""
