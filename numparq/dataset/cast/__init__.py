"""Cast finished columns to the merged types of a dataset."""
