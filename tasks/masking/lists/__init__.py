"""Techniques that go by a list of kept words: allow list and vocabulary threshold (paper 3.1)."""
