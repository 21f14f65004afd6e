"""A file as DataFrames, one batch after the other, in bounded memory: files, contenders, times and peaks."""
