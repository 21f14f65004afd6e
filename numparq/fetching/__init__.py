"""Bytes fetched ahead of their use."""

from .prefetched import MOST_BYTES, PrefetchedSource

__all__ = ["MOST_BYTES", "PrefetchedSource"]
