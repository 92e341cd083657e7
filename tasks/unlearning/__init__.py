"""Unlearning: make a language model forget a text that it was trained on."""
