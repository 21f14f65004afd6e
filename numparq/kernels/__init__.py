"""Kernels: Numba functions over arrays and int64s.

A kernel allocates nothing and raises nothing; its outputs are preallocated and come last. It returns a position, a
count, or a negative status (`status`). Buffers that kernels read or write extend `tables.SLACK` bytes past their useful
end.
"""
