"""Object stores, recorded reads and killed processes."""
