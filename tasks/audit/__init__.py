"""Privacy audit of a cell: attacks on its text, and on a language model trained on it."""
