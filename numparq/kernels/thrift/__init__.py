"""Kernels of Thrift's compact protocol."""
