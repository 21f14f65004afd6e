"""Column chunks: pages decoded into arrays, and arrays encoded into pages."""
