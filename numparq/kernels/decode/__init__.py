"""Decoding of pages: headers, decompression, sections, levels, values, casts, null padding."""
