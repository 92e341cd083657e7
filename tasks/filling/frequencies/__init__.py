"""Word frequencies: of generic text, estimated for the private domain, and by noisy counts."""
