"""Alembic scripts of the ledger."""
