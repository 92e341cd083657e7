"""What a cell gives away: attacks on its text, and on a language model that was trained on it."""
