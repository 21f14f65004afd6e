"""Plan a table with filter text: names regardless of case, and comparisons that Spark makes otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from numparq.dataset.partitions.predicate import PartitionComparison, PartitionPredicate
from numparq.errors import SchemaError, UnsupportedError
from numparq.expr.bound import ComparisonPredicate, ValuePredicate
from numparq.expr.expression import And, ColumnPredicate, Constant, Expression, Not, Or, OtherColumn
from numparq.spark.schema.comparison import is_collated
from numparq.spark.schema.row_metadata import read_row_metadata
from numparq.spark.schema.user_schema import FieldFinder, find_fields, find_fields_exactly

from .dialect import SparkDialect
from .parse import parse_spark_filter

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from numparq.dataset.splits.table import SplitTable
    from numparq.expr.expression import ColumnName
    from numparq.expr.sort_keys import KeyDomain
    from numparq.typing import Filters

_MIN_LONG, _MAX_LONG = -(1 << 63), (1 << 63) - 1


def plan_with_text(
    filters: Filters, dialect: SparkDialect, plan: Callable[[Filters], SplitTable], schema: StructType | None = None
) -> SplitTable:
    """Plan a table with filters, of which text means what it means to Spark; a user's schema may change types.

    Raises SchemaError or UnsupportedError for comparisons that Spark makes otherwise, and ValueError for text that
    cannot be parsed.
    """
    if not isinstance(filters, str):
        return plan(filters)
    parsed = parse_spark_filter(filters, dialect)
    try:
        table = plan(parsed)
    except SchemaError as error:  # perhaps a name in another case
        renamed = _rename(parsed, _name_finder(_plan_without_filter(plan, error), dialect))
        if renamed == parsed:
            raise
        table = plan(renamed)
        parsed = renamed
    folded = _fold_comparisons(parsed, plan)
    if folded != parsed:
        table = plan(folded)
    _check_comparisons(table, dialect)
    _check_types(table, schema)
    return table


def _plan_without_filter(plan: Callable[[Filters], SplitTable], error: SchemaError) -> SplitTable:
    """Plan the table alone; raise the error of the filter if that fails too."""
    try:
        return plan(None)
    except SchemaError:
        raise error from None


# --- names ------------------------------------------------------------------------------------------------------------


def _name_finder(table: SplitTable, dialect: SparkDialect) -> Callable[[ColumnName], ColumnName]:
    """Return a function that finds the exact name of a column."""
    finder = find_fields_exactly if dialect.case_sensitive else find_fields
    columns = [*table.schema.columns, *table.partitions]

    def find(name: ColumnName) -> ColumnName:
        path = (name,) if isinstance(name, str) else name
        (place,) = finder(columns, [path[0]])
        if place is None:
            return name
        found = (columns[place], *_find_path(table, columns[place], path[1:], finder))
        return found[0] if isinstance(name, str) else found

    return find


def _find_path(table: SplitTable, column: str, path: tuple[str, ...], finder: FieldFinder) -> Iterator[str]:
    """Yield the exact names of a path's fields, below a column; unknown ones as they are."""
    schema = table.schema
    element = schema.schema_element(schema.column_element(schema.positions[column])) if path else None
    for step in path:
        children = [] if element is None else [schema.schema_element(child) for child in element.children]
        (place,) = finder([child.name for child in children], [step])
        element = None if place is None else children[place]
        yield step if element is None else element.name


def _rename(expression: Expression, find: Callable[[ColumnName], ColumnName]) -> Expression:
    """Return an expression with the names that a function finds."""
    if isinstance(expression, (And, Or)):
        return type(expression)(tuple(_rename(part, find) for part in expression.parts))
    if isinstance(expression, Not):
        return Not(_rename(expression.part, find))
    if not isinstance(expression, ColumnPredicate):
        return expression
    operand = expression.operand
    if isinstance(operand, OtherColumn):
        operand = OtherColumn(find(operand.name))
    return ColumnPredicate(find(expression.name), expression.op, operand)


# --- types ------------------------------------------------------------------------------------------------------------


def _fold_comparisons(expression: Expression, plan: Callable[[Filters], SplitTable]) -> Expression:
    """Return an expression with Spark's constants for integers beside numbers outside bigint, which nulls satisfy too.

    Spark takes ``a <= 99999999999999999999`` for true, and ``>`` for false, before it looks at any row.
    """
    if isinstance(expression, (And, Or)):
        parts = [_fold_comparisons(part, plan) for part in expression.parts]
        # The parser's test for NaN beside ``>``, unknown for nulls, goes too.
        integers = {
            ColumnPredicate(old.name, "is nan")
            for old, new in zip(expression.parts, parts, strict=True)
            if isinstance(new, Constant) and isinstance(old, ColumnPredicate)
        }
        return type(expression)(tuple(part for part in parts if part not in integers))
    if isinstance(expression, Not):
        return Not(_fold_comparisons(expression.part, plan))
    if not isinstance(expression, ColumnPredicate) or not _is_outside_bigint(expression):
        return expression
    probe = plan(ColumnPredicate(expression.name, "==", 0)).reader.predicate
    types = [each.domain.type for each in _predicates(probe) if isinstance(each, ValuePredicate)]
    if not any(each.kind == "int" and (each.signed or each.bit_width < 64) for each in types):
        return expression
    return Constant((expression.op[0] == "<") == (_exact_number(expression) > 0))


def _is_outside_bigint(predicate: ColumnPredicate) -> bool:
    """Whether a predicate orders a column and an exact number that no bigint is."""
    return predicate.op in ("<", "<=", ">", ">=") and not _MIN_LONG <= _exact_number(predicate) <= _MAX_LONG


def _exact_number(predicate: ColumnPredicate) -> Decimal | int:
    """Return the number that a column is compared with; 0 if it is a double, or no number."""
    number = getattr(predicate.operand, "number", predicate.operand)
    is_exact = isinstance(number, (int, Decimal)) and not getattr(predicate.operand, "is_double", False)
    return number if is_exact else 0


def _predicates(bound: Expression) -> Iterator[Any]:
    """Yield the predicates of a bound expression."""
    if isinstance(bound, (And, Or)):
        for part in bound.parts:
            yield from _predicates(part)
    elif isinstance(bound, (PartitionComparison, PartitionPredicate)):
        yield bound.predicate
    elif not isinstance(bound, Constant):
        yield bound


def _check_comparisons(table: SplitTable, dialect: SparkDialect) -> None:
    """Refuse comparisons of columns that Spark makes after a lossy cast."""
    for each in _predicates(table.reader.predicate):
        if not isinstance(each, ComparisonPredicate):
            continue
        domains = (each.domain, each.other_domain)
        narrow = not dialect.ansi and any(domain.is_float and domain.width < 8 for domain in domains)
        digits = 16 if narrow else 32
        if any(domain.is_float for domain in domains) and any(_is_longer(domain, digits) for domain in domains):
            message = f"{each.text}: Spark rounds a number to a float to compare it; cast, and filter the DataFrame"
            raise SchemaError(message, column=each.leaf.name)


def _is_longer(domain: KeyDomain, bits: int) -> bool:
    """Whether an exact number has more bits."""
    return domain.type.kind == "decimal" or (domain.type.kind == "int" and domain.type.bit_width > bits)


def _check_types(table: SplitTable, schema: StructType | None) -> None:
    """Refuse collations, and types of a user's schema by which text means something else."""
    stored = read_row_metadata(table.schema_file.footer.key_value_metadata)
    wanted = {} if schema is None else {field.name: field for field in schema.fields}
    for name in table.reader.filter_names:
        types = [fields[name].dataType for fields in (stored, wanted) if name in fields]
        if any(is_collated(each) for each in types):
            raise UnsupportedError("the column has a collation, which filter text does not support", column=name)
        if name in wanted and type(types[-1]).__name__ == "TimestampNTZType" and _is_date(table, name):
            raise UnsupportedError("the schema makes timestamps of dates; filter the DataFrame", column=name)


def _is_date(table: SplitTable, name: str) -> bool:
    leaves = [leaf for leaf in map(table.schema.leaf, range(table.schema.num_leaves)) if leaf.path == (name,)]
    return any(leaf.logical is not None and leaf.logical.kind == "DATE" for leaf in leaves)
