"""A pytest plugin that runs pandas' tests for pyarrow's engine with numparq.

`numparq.pandas.hook.register` replaces pandas' pyarrow class, so that the engine's name, the default and comparisons
mean numparq. The plugin supplies what the wheel lacks: a file server and one data file. The outcome of each test is
written as JSON to the file named by the environment variable OUTCOMES.
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
    """Remove pandas' fixture, which needs a file missing from its wheel, in favour of the one below."""
    if getattr(plugin, "__name__", None) == "pandas.conftest":
        del plugin.datapath  # type: ignore[attr-defined]


@pytest.fixture
def datapath(tmp_path: Path):
    """Return the one data file that the tests use, written by pyarrow."""

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
    """Record an outcome: of the call, or of a failing setup or teardown."""
    if report.when == "call" or report.outcome != "passed":
        kept = "xfailed" if report.outcome == "skipped" and hasattr(report, "wasxfail") else report.outcome
        outcomes[report.nodeid.partition("::")[2]] = kept, str(report.longrepr)


def pytest_sessionfinish() -> None:
    Path(os.environ["OUTCOMES"]).write_text(json.dumps(outcomes))
