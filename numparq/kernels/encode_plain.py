"""PLAIN, encoded."""
