"""Ways to choose a word for a slot: Top-1, Top-K, sample, and the control by frequency (paper 3.2)."""
