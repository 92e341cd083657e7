"""What a run keeps in the folder that it works in: its lock, overrides, private folders."""
