"""Check of the machine and of an experiment's requirements: ``palimpsest doctor``."""
