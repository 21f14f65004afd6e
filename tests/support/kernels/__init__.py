"""Kernel test helpers: engines, guarded buffers, filled tables."""
