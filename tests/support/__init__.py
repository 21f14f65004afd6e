"""Helpers of the tests; test modules import from here, never from each other."""
