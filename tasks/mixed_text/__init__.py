"""Text that mixes languages on demand: synthetic, of lines in one language or by a language model."""
