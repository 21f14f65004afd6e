"""Thrift: the IDL, its layouts, the compact protocol."""
