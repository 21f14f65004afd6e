"""Batched reads in bounded memory: files, readers, times and peaks."""
