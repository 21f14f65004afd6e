"""Columns, frames and tables that tests write and read."""
