"""Kernels that evaluate predicates."""
