"""`VaultKms`: master keys of HashiCorp Vault's transit engine, by its HTTP interface."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from numparq.errors import DecryptionError
from numparq.keys.key_material import decode_base64
from numparq.util.arguments import check_seconds

if TYPE_CHECKING:
    from typing import NoReturn

_MAX_ANSWER_BYTES = 1 << 20
_ADVICE = {
    400: "the key or the wrapped key is not one of this engine",
    403: "the token is wrong or has expired, or its policy does not allow this",
    404: "the engine or the key does not exist",
    405: "the engine or the key does not exist",
    429: "there are too many requests",
    503: "it is sealed or in maintenance",
}


class VaultKms:
    """Wraps keys by the transit engine of HashiCorp Vault, or of OpenBao.

    Parameters
    ----------
    address : str, optional
        Address of the server, ``https://vault.example:8200``; by default that in the environment variable
        ``VAULT_ADDR``. Plain HTTP is refused, except to this machine.
    token : str, optional
        Token that may use ``encrypt`` and ``decrypt`` of the keys. By default ``VAULT_TOKEN`` is read at each call.
    mount : str, default "transit"
        Path of the transit engine.
    namespace : str, optional
        Namespace; by default ``VAULT_NAMESPACE``, or none.
    ca_file : str, optional
        PEM file of the authorities that may sign the server's certificate; by default ``VAULT_CACERT``, or those of
        the system.
    timeout : float, default 30
        Seconds to wait for an answer.

    Examples
    --------
    >>> from numparq.keys.clients import VaultKms
    >>> VaultKms("https://vault.example:8200", token="s.1234", mount="parquet")
    VaultKms('https://vault.example:8200', mount='parquet')
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        mount: str = "transit",
        namespace: str | None = None,
        ca_file: str | None = None,
        timeout: float = 30,
    ) -> None:
        self._address = _check_address(address or os.environ.get("VAULT_ADDR", ""))
        # In a function, whose text shows nothing of it.
        self._read_token: Callable[[], str | None] = lambda: token or os.environ.get("VAULT_TOKEN")
        self._mount = mount.strip("/")
        self._namespace = namespace or os.environ.get("VAULT_NAMESPACE")
        self._timeout = check_seconds(timeout, "timeout")
        context = ssl.create_default_context(cafile=ca_file or os.environ.get("VAULT_CACERT"))
        # Without the handler of redirects, which would send the token to another server.
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            # A proxy sees what plain HTTP carries, which is for this machine alone.
            urllib.request.ProxyHandler(None if self._address.startswith("https:") else {}),
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(context=context),
            urllib.request.HTTPErrorProcessor(),
            urllib.request.HTTPDefaultErrorHandler(),
        ):
            self._opener.add_handler(handler)

    def wrap_key(self, key: bytes, master_key_id: str) -> str:
        """Return a key, encrypted by a key of the engine, as text.

        Parameters
        ----------
        key : bytes
            The key.
        master_key_id : str
            Name of the engine's key.

        Returns
        -------
        str
        """
        return self._call("encrypt", master_key_id, {"plaintext": base64.b64encode(key).decode()}, "ciphertext")

    def unwrap_key(self, wrapped_key: str, master_key_id: str) -> bytes:
        """Return the key that `wrap_key` encrypted.

        Parameters
        ----------
        wrapped_key : str
            What `wrap_key` returned.
        master_key_id : str
            Name of the engine's key.

        Returns
        -------
        bytes
        """
        answer = self._call("decrypt", master_key_id, {"ciphertext": wrapped_key}, "plaintext")
        return decode_base64(answer, "Vault's answer")

    def _call(self, action: str, master_key_id: str, body: dict[str, str], field: str) -> str:
        """Return a field of the engine's answer; errors name the address and the status, never token or key."""
        if master_key_id in ("", ".", ".."):
            raise DecryptionError(f"{master_key_id!r} is no name of a key in Vault")
        url = f"{self._address}/v1/{quote(self._mount)}/{action}/{quote(master_key_id, safe='')}"
        request = urllib.request.Request(url, json.dumps(body).encode(), self._headers(), method="POST")
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                data = response.read(_MAX_ANSWER_BYTES)
        except urllib.error.HTTPError as error:
            error.close()
            advice = f": {_ADVICE[error.code]}" if error.code in _ADVICE else ""
            raise DecryptionError(f"Vault answered {error.code} to {url}{advice}") from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise DecryptionError(f"Vault cannot be reached at {url}: {reason or type(error).__name__}") from None
        try:
            value = json.loads(data)["data"][field]
        except (ValueError, TypeError, LookupError, RecursionError):
            value = None
        if not isinstance(value, str):
            raise DecryptionError(f"the answer of {url} is not that of Vault's transit engine")
        return value

    def _headers(self) -> dict[str, str]:
        token = self._read_token()
        if not token:
            raise DecryptionError("Vault needs a token: pass token=, or set VAULT_TOKEN")
        if not token.isascii() or not token.isprintable():
            raise DecryptionError("the token of Vault has characters that no token has, such as a line break")
        headers = {"X-Vault-Token": token, "X-Vault-Request": "true", "Content-Type": "application/json"}
        return headers | ({"X-Vault-Namespace": self._namespace} if self._namespace else {})

    def __repr__(self) -> str:
        mount = "" if self._mount == "transit" else f", mount={self._mount!r}"
        return f"VaultKms({self._address!r}{mount})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a VaultKms has a token and cannot be pickled or copied")


def _check_address(address: str) -> str:
    """Return an address without a slash at its end; ValueError unless TLS or this machine protects the token."""
    if not address:
        raise ValueError("VaultKms needs the address of the server: pass address=, or set VAULT_ADDR")
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("address must be that of a server, such as https://vault.example:8200")
    if "@" in parts.netloc:
        raise ValueError("address must have no user name or password; pass token=")
    if parts.scheme == "http" and not _is_this_machine(parts.hostname):
        raise ValueError(f"{address} would send the token and keys unencrypted; use https")
    return address.rstrip("/")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
