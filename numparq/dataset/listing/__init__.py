"""List files, local and remote."""
