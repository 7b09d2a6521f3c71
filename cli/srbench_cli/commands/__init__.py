"""The commands: each makes one call and prints one thing."""
