"""Testbed: a deterministic OpenAI-compatible upstream for tests, demo and load. Nothing in the product imports it."""
