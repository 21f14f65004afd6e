"""Read plans as pure data: row groups, row ranges, pages, byte ranges; no I/O, no decoding."""
