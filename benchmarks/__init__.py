"""Side-by-side measurements against peers: each row is a ratio from one run on one machine."""
