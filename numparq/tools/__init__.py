"""Programs on top of the library: verify, salvage, profile, optimize."""
