"""One run from its preparation to its record, with any scheduler."""
