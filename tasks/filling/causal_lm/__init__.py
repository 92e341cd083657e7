"""Filling with causal language models, constrained or free, and their tuning with LoRA (paper 3.2)."""
