"""Forgetting: a language model that was trained on text which it should not know is made to forget it."""
