"""Encryption of modules (Encryption.md): AAD, keys, AES-GCM and AES-CTR, bytes in and bytes out."""
