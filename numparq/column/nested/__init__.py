"""Dremel: levels to nested arrays, and back."""
