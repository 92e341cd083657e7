"""Lists of the n best hypotheses of a recogniser, and which of them a language model prefers."""
