"""Tables larger than memory: rows read in units that fit a budget, and handed out as batches."""
