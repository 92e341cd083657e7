"""Writing of files: complete or not at all, and never over an input."""
