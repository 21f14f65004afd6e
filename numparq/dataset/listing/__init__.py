"""Listings of files, local and remote."""
