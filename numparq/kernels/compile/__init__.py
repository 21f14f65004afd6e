"""Compilation, caching and loading of kernels.

The kernels of a group become relocatable objects with C entries, cached on disk and loaded by llvmlite without Numba.
"""
