"""Shallow fusion of a transducer with language models, inside the beam search."""
