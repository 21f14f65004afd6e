"""Plan rewrites of datasets, cluster their rows, and verify them by checksums."""
