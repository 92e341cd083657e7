"""Step 3: markers are replaced by substitutes (paper 3.2)."""
