"""Decode jobs and their schedule."""
