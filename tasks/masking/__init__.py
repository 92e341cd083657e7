"""Step 2: private words are replaced by markers (paper 3.1)."""
