"""Limits of a line of text."""

LONGEST_LINE = 64 << 20
"""Longest line in bytes; a longer one is no sentence."""
LARGEST_RATIO = 200
"""Largest ratio of decompressed to compressed size, plus ``LONGEST_LINE``. Text has 2 to 20."""
