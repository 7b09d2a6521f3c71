"""Alembic scripts of the planner's tables."""
