"""What leaves the private zone: the ledger of releases, and what is checked before one is written."""
