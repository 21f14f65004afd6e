"""Filtered reads against plain Python: random tables, predicates and reads, and an oracle that knows the rows.

`truth` has predicates and what they say of a row, `literals` and `kinds` the values and what they are worth, `tables`,
`storing`, `forging`, `asking` and `reading` the random parts of a case, and `case` puts them together.
"""
