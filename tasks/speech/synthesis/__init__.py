"""Synthetic speech from text, always labelled as such."""
