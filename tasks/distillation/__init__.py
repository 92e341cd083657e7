"""Text that a language model, or a contrast of two, writes to replace a private text."""
