"""Error recovery (section "Error recovery" of the format's README): damaged pages are skipped and reported."""

from __future__ import annotations

from .losses import LOST_ATTR, Losses, Lost, LostRows, choose_columns
from .page_walk import WalkedChunk, walk_pages
from .skip_damaged import SkipDamaged

__all__ = ["LOST_ATTR", "Losses", "Lost", "LostRows", "SkipDamaged", "WalkedChunk", "choose_columns", "walk_pages"]
