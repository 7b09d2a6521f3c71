"""The demo: a whole evaluation on this machine, against an upstream that only pretends to be models."""
