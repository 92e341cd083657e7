"""Origin of a number, and restoring that state."""
