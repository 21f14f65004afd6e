"""Matchers: bound predicates compiled to masks over decoded values."""
