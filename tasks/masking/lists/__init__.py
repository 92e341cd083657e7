"""Techniques that leave the words of a list unmasked: allow list and vocabulary threshold (paper 3.1)."""
