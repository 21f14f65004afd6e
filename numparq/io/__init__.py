"""Sources and sinks: bytes in and out, byte ranges, coalescing and prefetching."""
