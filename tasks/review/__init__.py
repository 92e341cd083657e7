"""Review: a person reads a small sample, from which the unmasked identifiers of the whole text are estimated."""
