"""Many files as one table: found, their schemas united, read and written."""
