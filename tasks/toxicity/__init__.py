"""How offensive a language model writes, and a classifier that says so."""
