"""The word-level Transformer: the model, its folder, how it reads a text, and what it says of one (paper 4.2)."""
