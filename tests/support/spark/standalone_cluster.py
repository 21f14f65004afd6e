"""A standalone master with two workers in separate processes, started by the pip package's scripts."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def wait_for(port: int, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """Yield the URL of the master; stop everything afterwards."""
    import pyspark

    home = Path(pyspark.__file__).parent
    script = str(home / "sbin" / "spark-daemon.sh")
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_PID_DIR": str(folder / "pids"),
        "SPARK_IDENT_STRING": "numparq",
        "SPARK_LOG_DIR": str(folder / "logs"),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    # Without its variables, a worker would take over those of a session that runs in this process.
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    started: list[tuple[str, str]] = []

    def start(kind: str, number: str, *arguments: str) -> None:
        subprocess.run([script, "start", kind, number, *arguments], env=environment, check=True, capture_output=True)
        started.append((kind, number))

    try:
        start(MASTER, "1", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        wait_for(port)
        for number in ("1", "2"):
            start(WORKER, number, "--cores", "1", "--memory", "1g", "--webui-port", "0", "--host", "127.0.0.1", url)
        yield url
    finally:
        for kind, number in reversed(started):
            subprocess.run([script, "stop", kind, number], env=environment, capture_output=True)
