"""A local HTTP server whose files, faults and headers a test chooses, and which writes down its requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class HttpFiles:
    """Files of a server, and how it answers.

    Attributes
    ----------
    files : dict of str to bytes
        Contents by path.
    statuses : dict of str to int
        Status of every answer for a path, instead of its content.
    headers : dict of str to str
        Headers of all answers with content.
    refuses_head, has_head_length, has_ranges : bool
        Whether HEAD is answered by 405, whether it tells the true length (None: no length), whether ranges are served.
    requests : list of (str, str, str or None)
        Method, path and range of each request.
    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    refuses_head: bool = False
    has_head_length: bool | None = True
    has_ranges: bool = True
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)

    def methods(self) -> list[str]:
        """Return the methods of the requests so far, and forget these."""
        methods = [method for method, _, _ in self.requests]
        self.requests.clear()
        return methods


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: HttpFiles

    def do_HEAD(self) -> None:
        self._answer(is_head=True)

    def do_GET(self) -> None:
        self._answer(is_head=False)

    def _answer(self, is_head: bool) -> None:
        store, path, wanted = self.store, self.path.partition("?")[0], self.headers.get("Range")
        store.requests.append((self.command, self.path, wanted))
        data = store.files.get(path)
        status = store.statuses.get(path, 404 if data is None else 200)
        if is_head and store.refuses_head:
            status = 405
        if status != 200 or data is None:
            self._send(status, b"", {"Content-Length": "0"})
            return
        headers = dict(store.headers)
        size = len(data)
        if wanted and store.has_ranges:
            first, last = wanted.removeprefix("bytes=").split("-")
            start, end = int(first), min(int(last), size - 1)
            if start >= size:
                self._send(416, b"", {"Content-Length": "0", "Content-Range": f"bytes */{size}"})
                return
            headers["Content-Range"] = f"bytes {start}-{end}/{size}"
            status, data = 206, data[start : end + 1]
        if not is_head:
            self._send(status, data, {**headers, "Content-Length": str(len(data))})
        elif store.has_head_length is None:
            self._send(status, b"", {**headers, "Transfer-Encoding": "chunked"})
        else:
            self._send(status, b"", {**headers, "Content-Length": str(size if store.has_head_length else 0)})

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def http_server() -> Iterator[HttpFiles]:
    """Run a server on a free port of this machine."""
    store = HttpFiles()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"store": store}))
    server.daemon_threads = True
    store.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
