"""Word errors of a recogniser: counts, rates, intervals and alignments (docs/word_error_rate.md)."""
