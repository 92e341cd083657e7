"""Labelled text: its file format, and templates that make as much of it as is wanted."""
