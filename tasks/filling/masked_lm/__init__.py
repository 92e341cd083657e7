"""Filling with masked language models: BERT, RoBERTa and their kin (paper 3.2)."""
