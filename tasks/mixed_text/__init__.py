"""Synthetic text that mixes languages, spliced from lines in one language or written by a language model."""
