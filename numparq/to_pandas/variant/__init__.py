"""VARIANT columns: shredded values put together."""
