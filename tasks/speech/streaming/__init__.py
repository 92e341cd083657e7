"""Streaming recognition: partial results, their changes, and their lag."""
