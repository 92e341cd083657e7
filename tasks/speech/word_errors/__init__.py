"""How many words a recogniser gets wrong: counts, rates, intervals and alignments (docs/word_error_rate.md)."""
