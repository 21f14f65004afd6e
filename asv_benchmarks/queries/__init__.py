"""The same query to a pandas DataFrame, by numparq and its peers: files, conditions, contenders, goals."""
