"""Command line: a client of the front door. Imports stubs and kit, never a service."""
