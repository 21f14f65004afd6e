"""Kernels that decode selected rows."""
