"""Labelled text: its file format, and templates that generate any amount of it."""
