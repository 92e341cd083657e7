"""Profiles: other parameters for the same code."""
