"""Encoding of column chunks: encoding choice, dictionary, pages, compression, statistics."""
