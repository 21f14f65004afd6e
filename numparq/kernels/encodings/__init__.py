"""Encodings.md: a module an encoding, both directions."""
