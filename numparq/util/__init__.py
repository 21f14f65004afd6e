"""Caches, threads, progress, arguments."""
