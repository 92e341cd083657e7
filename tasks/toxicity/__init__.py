"""Toxicity of a language model's text, and a classifier of it."""
