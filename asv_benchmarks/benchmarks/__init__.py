"""The workloads of the side-by-side runner as asv benchmarks.

asv puts the folder above this one on the path, not the one above that, where the package `asv_benchmarks` lies. It is
added at the end, so that numparq comes from asv's environment and not from the working tree.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
