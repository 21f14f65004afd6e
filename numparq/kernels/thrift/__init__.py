"""Thrift's compact protocol."""
