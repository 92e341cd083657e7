"""A cell of a finished run, applied to any amount of text."""
