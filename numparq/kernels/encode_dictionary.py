"""Values to dictionary indices, through a hash table."""
