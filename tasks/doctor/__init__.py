"""What a machine has, and what an experiment needs: ``palimpsest doctor``."""
