"""Hostile files: small ones of every kind, damage to them, and a process that reads them."""
