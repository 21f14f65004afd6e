"""Keys of encrypted files: given directly, or by a function."""
