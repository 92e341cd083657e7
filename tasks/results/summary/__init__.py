"""All cells of an experiment in one file, and their table."""
