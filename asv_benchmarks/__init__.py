"""Side-by-side benchmarks of numparq and its peers, and the same workloads for asv (see README.md beside this file)."""
