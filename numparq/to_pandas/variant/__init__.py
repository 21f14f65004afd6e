"""VARIANT columns, shredded or not, to objects, bytes or Arrow structs."""
