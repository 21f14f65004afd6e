"""Version of numparq, and the `created_by` of the footers it writes."""

from __future__ import annotations

__version__ = "0.1.0"

# The reader of Java takes the application's name and version out of this.
CREATED_BY = "numparq version {version}"
