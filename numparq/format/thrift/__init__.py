"""Thrift: structs and enums of the IDL, their layouts in words, and the compact protocol both ways."""
