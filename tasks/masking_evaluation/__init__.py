"""How well masking protects: the words that a technique masks, held against labelled text."""
