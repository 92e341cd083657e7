"""Taggers trained on labelled text: a conditional random field, and a spaCy pipeline."""
