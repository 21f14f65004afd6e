"""Types: (physical, logical) to NumPy, pandas and Arrow."""
