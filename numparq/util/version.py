"""Version of numparq, and the `created_by` of the footers it writes."""

from __future__ import annotations

__version__ = "0.1.0"

# parquet-java parses the application's name and version.
CREATED_BY = "numparq version {version}"
