"""Commit protocol of dataset writes: commit records, stages and stores, local and remote."""
