"""One read: which columns, which rows of a file, decoded into memory, put together as a frame."""
