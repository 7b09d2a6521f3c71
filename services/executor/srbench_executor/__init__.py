"""Executor: the only process that holds model keys and opens connections to models."""
