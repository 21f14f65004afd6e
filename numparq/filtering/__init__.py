"""Late materialisation: the columns of a filter are decoded first, and what else is read only where rows are left."""
