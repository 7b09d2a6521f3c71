"""Leases cells, calls models, settles, has answers graded. The only process that holds model keys."""
