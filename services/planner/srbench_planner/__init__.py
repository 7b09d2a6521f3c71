"""Planner: says what should happen. Owns catalog, datasets, targets, plans, runs and the work queue."""
