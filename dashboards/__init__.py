"""Presentation of results: the report page, other pages and services."""
