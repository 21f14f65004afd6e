"""What a read has to fetch: row groups -> row ranges -> pages -> byte ranges; pure data, neither I/O nor decoding."""
