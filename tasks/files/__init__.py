"""How files are written: whole or not at all, never over what is read, and nothing left behind."""
