"""Encodings.md: one module per encoding, both directions."""
