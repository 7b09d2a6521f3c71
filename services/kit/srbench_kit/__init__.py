"""What every process shares: errors, the wire, serving, settings, storage, canonical JSON. Owns no state of its own."""
