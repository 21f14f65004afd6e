"""Expressions: col(), filter lists, binding to a schema, evaluation over decoded columns."""
