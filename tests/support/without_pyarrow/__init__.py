"""Files that pandas wrote with pyarrow, for environments without pyarrow."""
