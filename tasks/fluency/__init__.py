"""Fluency of filled text."""
