"""Column chunks to arrays: fetch, decompress, transcode, decode."""
