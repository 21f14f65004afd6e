"""`AwsKms`: master keys of AWS Key Management Service, by boto3."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numparq.errors import DecryptionError
from numparq.keys.key_material import decode_base64

if TYPE_CHECKING:
    from typing import NoReturn


class AwsKms:
    """Wraps keys by keys of AWS KMS. Needs boto3: ``pip install numparq[aws]``.

    Parameters
    ----------
    client : boto3 client, optional
        Client of the service ``kms``; by default one is made from boto3's own settings: environment, profile, role.
    region : str, optional
        Region of the client that is made.
    encryption_context : dict of str to str, optional
        Encryption context, which AWS authenticates and logs; readers need the same.

    Notes
    -----
    A master key's name is what AWS takes as KeyId: an id, an ARN, or an alias such as ``alias/staff``.

    Examples
    --------
    >>> from numparq.keys.clients import AwsKms
    >>> kms = AwsKms(region="eu-central-1")  # doctest: +SKIP
    """

    def __init__(
        self,
        client: object = None,
        *,
        region: str | None = None,
        encryption_context: Mapping[str, str] | None = None,
    ) -> None:
        if client is not None and region is not None:
            raise ValueError("region is for the client that is made; a client has its own")
        self._client = _make_client(region) if client is None else client
        self._context = {"EncryptionContext": dict(encryption_context)} if encryption_context else {}

    def wrap_key(self, key: bytes, master_key_id: str) -> str:
        """Return a key, encrypted by a key of AWS KMS, as text.

        Parameters
        ----------
        key : bytes
            The key.
        master_key_id : str
            Id, ARN or alias of the key in AWS KMS.

        Returns
        -------
        str
        """
        answer = self._call("encrypt", master_key_id, Plaintext=key)
        return base64.b64encode(answer["CiphertextBlob"]).decode()

    def unwrap_key(self, wrapped_key: str, master_key_id: str) -> bytes:
        """Return the key that `wrap_key` encrypted.

        Parameters
        ----------
        wrapped_key : str
            What `wrap_key` returned.
        master_key_id : str
            Id, ARN or alias of the key in AWS KMS.

        Returns
        -------
        bytes
        """
        sealed = decode_base64(wrapped_key, "the wrapped key")
        return bytes(self._call("decrypt", master_key_id, CiphertextBlob=sealed)["Plaintext"])

    def _call(self, action: str, master_key_id: str, **body: bytes) -> Mapping[str, Any]:
        """Return the answer of AWS; errors have its code and message, not the request, which may hold a key."""
        try:
            answer: Mapping[str, Any] = getattr(self._client, action)(KeyId=master_key_id, **body, **self._context)
            return answer
        except Exception as error:
            code = getattr(error, "response", {}).get("Error", {}).get("Code") or type(error).__name__
        # Here, so that the error is not the context of the new one.
        raise DecryptionError(f"AWS KMS could not {action} a key by {master_key_id!r}: {code}")

    def __repr__(self) -> str:
        region = getattr(getattr(self._client, "meta", None), "region_name", None)
        return f"AwsKms({'' if region is None else f'region={region!r}'})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an AwsKms has credentials and cannot be pickled or copied")


def _make_client(region: str | None) -> object:
    try:
        import boto3
    except ImportError:
        raise ImportError("AWS KMS needs boto3: pip install numparq[aws]") from None
    client: object = boto3.client("kms", region_name=region)
    return client
