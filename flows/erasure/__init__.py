"""What this clone has of one corpus, and how it is removed."""
