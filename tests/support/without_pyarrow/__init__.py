"""Files that pandas wrote with pyarrow, for where pyarrow is not installed."""
