"""Values without their nulls."""
