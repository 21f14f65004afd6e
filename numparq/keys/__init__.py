"""Keys of encrypted files: given directly, by a function, or by a key management system (KMS)."""
