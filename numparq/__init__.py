"""numparq."""
