"""The processes that run stages, and changes to DVC in them."""
