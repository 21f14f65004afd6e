"""The side-by-side workloads as asv benchmarks.

asv puts the folder above this one on the path, but not its parent, where `asv_benchmarks` lies. The parent is appended,
so that numparq comes from asv's environment and not from the working tree.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
