"""The footer: file metadata, column chunk metadata, checkpoints and rewrites."""
