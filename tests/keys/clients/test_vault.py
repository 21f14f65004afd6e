"""Vault's transit engine, played by a local server: requests, errors without secrets, redirects, addresses."""

from __future__ import annotations

import base64
import json
import pickle
import ssl
import threading
import traceback
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import numparq
from numparq.errors import DecryptionError
from numparq.keys.clients import VaultKms

TOKEN, KEY = "s.secret-token", b"a secret key: 16"


class Transit(BaseHTTPRequestHandler):
    """Wraps a key by its base64 text with the name of the master key in front of it."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers)))
        if self.server.answer is not None:
            status, content, headers = self.server.answer
        elif self.headers["X-Vault-Token"] != TOKEN:
            status, content, headers = 403, b'{"errors":["permission denied"]}', {}
        else:
            _, _, engine, action, name = self.path.split("/")
            assert engine == "transit"
            if action == "encrypt":
                data = {"ciphertext": f"vault:v1:{name}:{body['plaintext']}"}
            else:
                data = {"plaintext": body["ciphertext"].removeprefix(f"vault:v1:{name}:")}
            status, content, headers = 200, json.dumps({"data": data}).encode(), {}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    for name in ("VAULT_ADDR", "VAULT_TOKEN", "VAULT_NAMESPACE", "VAULT_CACERT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # which must not see plain HTTP
    for name in ("no_proxy", "NO_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Transit) as server:
        server.requests, server.answer = [], None
        server.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=[0.01]).start()
        yield server
        server.shutdown()


def test_requests(server, monkeypatch):
    kms = VaultKms(server.address + "/", token=TOKEN, namespace="team")
    wrapped = kms.wrap_key(KEY, "a key")
    assert kms.unwrap_key(wrapped, "a key") == KEY
    assert [path for path, _ in server.requests] == ["/v1/transit/encrypt/a%20key", "/v1/transit/decrypt/a%20key"]
    _, headers = server.requests[0]
    assert headers["X-Vault-Namespace"] == "team"
    assert headers["X-Vault-Request"] == "true"
    monkeypatch.setenv("VAULT_ADDR", server.address)
    monkeypatch.setenv("VAULT_TOKEN", TOKEN)
    assert VaultKms().unwrap_key(wrapped, "a%20key".replace("%20", " ")) == KEY


def test_files(server):
    kms = VaultKms(server.address, token=TOKEN)
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    data = numparq.to_parquet(frame, encryption=numparq.KmsEncryption(kms, "kf", {"kc": ["b"]}))
    pd.testing.assert_frame_equal(numparq.read_parquet(data, decryption=numparq.KmsDecryption(kms)), frame)
    other = VaultKms(server.address, token="another")
    with pytest.raises(DecryptionError, match=r"Vault answered 403 to .*/v1/transit/decrypt/kf: the token is wrong"):
        numparq.read_parquet(data, decryption=numparq.KmsDecryption(other))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((404, b"", {}), "Vault answered 404 to http://127.0.0.1:.*/v1/transit/encrypt/kf: the engine or the key does"),
        ((500, TOKEN.encode() + KEY, {}), "Vault answered 500 to http://127.0.0.1"),
        ((307, b"", {"Location": "http://127.0.0.1:9/elsewhere"}), "Vault answered 307"),
        ((302, b"", {"Location": "http://127.0.0.1:9/elsewhere"}), "Vault answered 302"),
        ((200, b"<html>", {}), "is not that of Vault's transit engine"),
        ((200, b'{"data": {"ciphertext": 7}}', {}), "is not that of Vault's transit engine"),
        ((200, b"[" * 100_000, {}), "is not that of Vault's transit engine"),
    ],
)
def test_errors_have_address_and_status_and_no_secrets(server, answer, message):
    server.answer = answer
    with pytest.raises(DecryptionError, match=message) as caught:
        VaultKms(server.address, token=TOKEN).wrap_key(KEY, "kf")
    shown = "".join(traceback.format_exception(caught.value))
    for secret in (TOKEN, KEY.decode(), base64.b64encode(KEY).decode()):
        assert secret not in shown
    assert len(server.requests) == 1


def test_servers_that_do_not_answer(server):
    address = server.address
    server.shutdown()
    server.server_close()
    with pytest.raises(DecryptionError, match=r"Vault cannot be reached at http://127.0.0.1:.*refused"):
        VaultKms(address, token=TOKEN).wrap_key(KEY, "kf")


@pytest.mark.parametrize("token", [None, "", "two\nlines", "sécret"])
def test_tokens(server, token):
    with pytest.raises(DecryptionError, match="token") as caught:
        VaultKms(server.address, token=token).wrap_key(KEY, "kf")
    assert not server.requests
    assert "lines" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("", "set VAULT_ADDR"),
        ("http://vault.example:8200", "would send the token and keys unencrypted; use https"),
        ("http://127.0.0.1.example", "use https"),
        ("https://user:password@vault.example", "no user name or password"),
        ("ftp://vault.example", "must be that of a server"),
        ("vault.example:8200", "must be that of a server"),
        ("https://vault.example?x=1", "must be that of a server"),
    ],
)
def test_addresses(server, address, message):
    with pytest.raises(ValueError, match=message) as caught:
        VaultKms(address, token=TOKEN)
    assert "password@" not in str(caught.value)


def test_names_that_lead_elsewhere(server):
    kms = VaultKms(server.address, token=TOKEN)
    for name in ("", ".", ".."):
        with pytest.raises(DecryptionError, match="no name of a key"):
            kms.wrap_key(KEY, name)
    kms.wrap_key(KEY, "a?b#c")
    assert server.requests[-1][0] == "/v1/transit/encrypt/a%3Fb%23c"


def test_nothing_shows_the_token(server):
    kms = VaultKms("https://vault.example:8200/", token=TOKEN, mount="/parquet/")
    assert repr(kms) == "VaultKms('https://vault.example:8200', mount='parquet')"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(kms)


def certificate(folder):
    """Return files of a certificate for this machine, signed by itself, and of its key."""
    now, key = datetime.now(UTC), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(signed.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(private)
    return folder / "certificate.pem", folder / "key.pem"


def test_certificates_are_verified(server, tmp_path):
    signed, private = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed, private)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    address = server.address.replace("http://127.0.0.1", "https://localhost")
    assert VaultKms(address, token=TOKEN, ca_file=str(signed)).wrap_key(KEY, "kf").startswith("vault:v1:kf:")
    for kms in (
        VaultKms(address, token=TOKEN),
        VaultKms(address.replace("localhost", "127.0.0.1"), token=TOKEN, ca_file=str(signed)),
    ):
        with pytest.raises(DecryptionError, match=r"cannot be reached at https://.*CERTIFICATE_VERIFY_FAILED"):
            kms.wrap_key(KEY, "kf")
    assert len(server.requests) == 1
