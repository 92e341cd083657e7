"""The processes that carry stages out, and what DVC does differently in them."""
