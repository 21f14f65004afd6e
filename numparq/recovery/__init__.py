"""Error recovery while reading: ``on_error="skip"`` gives the rows and columns that are whole, and says what is lost.

What of a file is lost through which damage follows the format ("Error recovery" in its README):

- a chunk's metadata in the footer: that chunk
- a page header: the rest of its chunk, or only that page where an offset index says where the next one is
- what is in a page: that page; a dictionary page: all pages with indices into it
- indexes and Bloom filters: nothing
"""

from .lost import Losses, Lost, LostRows
from .reading import LOST, Recovery
from .walk import WalkedChunk, walk_pages

__all__ = ["LOST", "Losses", "Lost", "LostRows", "Recovery", "WalkedChunk", "walk_pages"]
