"""Evaluation of predicates on columns.

A kernel that matches rows combines each result, 0 or 1 (0 for a null), with the row's byte of the mask `out`.
`or_true` and `or_previous` choose how: both 1 for or, both 0 for and, 1 and 0 to overwrite.
"""
