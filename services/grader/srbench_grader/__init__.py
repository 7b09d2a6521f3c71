"""Grader: judges answers against references. Holds nothing durable."""
