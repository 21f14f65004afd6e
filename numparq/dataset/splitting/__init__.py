"""A table divided into splits, each of which another process reads: planned here, carried there, read there."""
