"""State of a run in its working folder: its lock and overrides."""
