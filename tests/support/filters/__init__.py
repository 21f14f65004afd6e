"""Filtered reads against plain Python: random tables, predicates and reads, and an oracle that knows the rows.

`predicates` has predicates and their truth for a row, `literals` and `column_kinds` the values and what they are worth,
`tables`, `writers`, `random_predicates` and `reads` the random parts of a case, and `case` puts them together.
"""
