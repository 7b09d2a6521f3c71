"""A benchmark that another package brings to sr-bench."""
