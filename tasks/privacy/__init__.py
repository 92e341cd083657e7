"""Releases from the private zone: their ledger, and the checks before one is written."""
