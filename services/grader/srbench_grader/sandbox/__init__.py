"""Runs programs that nobody trusts: one small interface, two backends (Docker, bubblewrap)."""
