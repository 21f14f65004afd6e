"""Commit protocol: commit records, stages and stores, local and remote."""
