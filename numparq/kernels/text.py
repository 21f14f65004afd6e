"""Python's str and bytes objects to bytes and offsets."""
