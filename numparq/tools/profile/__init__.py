"""Profile a dataset: contents, storage, and how much of it a look-up would read."""

from __future__ import annotations

from .job import ProfileJob, profile_files
from .partial_profile import PartialProfile, merge_profiles
from .profile import ColumnProfile, LookupCost, Profile

__all__ = ["ColumnProfile", "LookupCost", "PartialProfile", "Profile", "ProfileJob", "merge_profiles", "profile_files"]
