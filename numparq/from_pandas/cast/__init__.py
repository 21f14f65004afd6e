"""Cast leaf values to the types of a schema."""
