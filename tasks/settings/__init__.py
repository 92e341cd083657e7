"""Shared code of all settings: a base that refuses unknown keys, checks, and seeds."""
