"""What asv's runs take from the environment, since asv passes no arguments on to benchmarks."""

from __future__ import annotations

import os

SCALE = float(os.environ.get("NUMPARQ_BENCH_SCALE", "1.0"))
"""Share of the full size of the files."""

THREADS = int(os.environ.get("NUMPARQ_BENCH_THREADS", "2"))
"""Threads of every reader."""

REPEAT = int(os.environ.get("NUMPARQ_BENCH_REPEAT", "5"))
"""Least number of timed reads in a ratio."""
