"""A plugin of pytest, for pandas' own tests: where they ask for pyarrow's engine, numparq answers.

`numparq.pandas.hook.register` gives the engine, and it takes the place of pandas' class for pyarrow, so that
everything in
the tests that is meant for that engine (its name, the default, the comparisons with the name) means numparq. What
pandas' wheel and the environment lack for a test is made here: a server of files, and a file of pandas' repository.

The outcome of each test is written, as JSON, to the file that the environment variable OUTCOMES names.
"""

from __future__ import annotations

import http.server
import json
import os
import threading
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pandas.io import parquet

import numparq.pandas

numparq.pandas.register()
parquet.PyArrowImpl = type(parquet.get_engine("numparq"))

outcomes: dict[str, tuple[str, str]] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_plugin_registered(plugin: object) -> None:
    """Let the fixture below serve instead of that of pandas, which looks for a file that its wheel does not have."""
    if getattr(plugin, "__name__", None) == "pandas.conftest":
        del plugin.datapath  # type: ignore[attr-defined]


@pytest.fixture
def datapath(tmp_path: Path):
    """Give the one data file that the tests ask for, as pyarrow writes it."""

    def path_of(*parts: str) -> str:
        assert parts[-1] == "simple.parquet"
        pq.write_table(pa.Table.from_pandas(pd.DataFrame({"A": [1, 2, 3], "B": "foo"})), tmp_path / parts[-1])
        return str(tmp_path / parts[-1])

    return path_of


class OneFileServer:
    """Serves one content at every path."""

    def __init__(self) -> None:
        self._content = b""
        served = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(served._content)))
                self.end_headers()
                self.wfile.write(served._content)

            def log_message(self, *arguments: object) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/"

    def serve_content(self, content: bytes) -> None:
        self._content = content


@pytest.fixture
def httpserver():
    server = OneFileServer()
    thread = threading.Thread(target=server.http.serve_forever, daemon=True)
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note an outcome: that of the call, or what kept a test from being called, or failed behind it."""
    if report.when == "call" or report.outcome != "passed":
        kept = "xfailed" if report.outcome == "skipped" and hasattr(report, "wasxfail") else report.outcome
        outcomes[report.nodeid.partition("::")[2]] = kept, str(report.longrepr)


def pytest_sessionfinish() -> None:
    Path(os.environ["OUTCOMES"]).write_text(json.dumps(outcomes))
