"""A person reads a small sample, and the product says how many identifiers stand unmasked in the whole text."""
