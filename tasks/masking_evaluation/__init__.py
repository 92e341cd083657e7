"""Evaluation of masking: the words that a technique masks, compared with labelled text."""
