"""What a run keeps in the folder that it works in: its lock and overrides."""
