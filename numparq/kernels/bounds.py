"""The smallest and the largest value of each page."""
