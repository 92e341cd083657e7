"""How it is seen: the report page."""
