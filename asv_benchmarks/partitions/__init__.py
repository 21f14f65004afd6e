"""Writes of a frame to hive partitions: frames, writers, times, number and size of files."""
