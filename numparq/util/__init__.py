"""Worker pool, caches, progress bar, argument checks."""
