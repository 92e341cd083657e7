"""What all settings have in common: a base that refuses unknown keys, checks, and seeds."""
