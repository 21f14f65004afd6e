"""Error recovery (section "Error recovery" of the format's README): damaged pages are skipped and reported."""
