"""Filtered reads against plain Python: random tables, predicates and reads, and an oracle that knows the rows.

`predicates` evaluates predicates per row; `literals` and `column_kinds` define values and their comparable form;
`tables`, `writers`, `random_predicates` and `reads` draw the parts of a case; `case` combines them.
"""
