"""Weighing what the context says against how frequent words are: the parts of ``log_linear``."""
