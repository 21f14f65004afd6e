"""Compression codecs: how each CompressionCodec compresses and decompresses a page."""
