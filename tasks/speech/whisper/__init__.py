"""N-best lists from a published recogniser: Whisper (Radford et al., 2022)."""
