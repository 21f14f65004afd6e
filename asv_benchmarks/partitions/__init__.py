"""A frame to a folder of hive partitions: frames, writers, times, and how many files of how many bytes there are."""
