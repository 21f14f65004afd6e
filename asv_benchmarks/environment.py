"""Settings of asv runs from the environment, because asv passes no arguments to benchmarks."""

from __future__ import annotations

import os
import time

SCALE = float(os.environ.get("NUMPARQ_BENCH_SCALE", "1.0"))
"""Share of the full size of the files."""

THREADS = int(os.environ.get("NUMPARQ_BENCH_THREADS", "2"))
"""Threads of every reader."""

REPEAT = int(os.environ.get("NUMPARQ_BENCH_REPEAT", "5"))
"""Least number of timed reads in a ratio."""

CLOCK = {"wall": time.perf_counter, "cpu": time.process_time}[os.environ.get("NUMPARQ_BENCH_CLOCK", "wall")]
"""What the runner and asv take times by; ``cpu`` is that of all threads, which a busy machine changes less."""
