"""Compile kernels, keep them, load them."""
