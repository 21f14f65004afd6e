"""Clients of key management systems: a file of master keys, HashiCorp Vault, AWS KMS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.util.lazy import lazy_names

if TYPE_CHECKING:
    from .aws import AwsKms
    from .file_kms import FileKms
    from .vault import VaultKms

__all__ = ["AwsKms", "FileKms", "VaultKms"]

_MODULE_OF = {"AwsKms": "aws", "FileKms": "file_kms", "VaultKms": "vault"}

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
