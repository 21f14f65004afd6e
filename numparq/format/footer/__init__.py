"""Footer: file metadata, column chunks, checkpoints."""
