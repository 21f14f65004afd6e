"""Queries to a pandas DataFrame by numparq and its peers: files, predicates, readers, goals."""
