"""Profile a dataset: contents, storage, and how much of it a look-up would read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.util.lazy import lazy_names

if TYPE_CHECKING:
    from .figures import ColumnProfile, LookupCost
    from .job import ProfileJob, profile_files
    from .partial_profile import PartialProfile, merge_profiles
    from .profile import Profile

__all__ = ["ColumnProfile", "LookupCost", "PartialProfile", "Profile", "ProfileJob", "merge_profiles", "profile_files"]

_MODULE_OF = {
    "ProfileJob": "job",
    "profile_files": "job",
    "PartialProfile": "partial_profile",
    "merge_profiles": "partial_profile",
    "ColumnProfile": "figures",
    "LookupCost": "figures",
    "Profile": "profile",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
