"""Kernels that decode pages."""
