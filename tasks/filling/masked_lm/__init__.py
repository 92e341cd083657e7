"""Filling with masked language models such as BERT and RoBERTa (paper 3.2)."""
