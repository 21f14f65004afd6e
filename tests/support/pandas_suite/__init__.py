"""pandas' own tests, run with numparq as the engine."""
