"""Profiles: what is in the files of a dataset, how it is stored, and how well files could be skipped.

Footers come first, then page indexes; dictionaries and data are read only of what these leave open. What is known of
one file (`part.Part`) adds up with what is known of others, so that the files may be divided among processes.
"""

from __future__ import annotations

from .job import ProfileJob, profile_files
from .part import Part, merged
from .result import ColumnProfile, Lookup, Profile

__all__ = ["ColumnProfile", "Lookup", "Part", "Profile", "ProfileJob", "merged", "profile_files"]
