"""Kernels that read and make Python objects."""
