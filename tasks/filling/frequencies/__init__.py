"""How often words occur: in generic text, in the private domain as far as that can be told, and by noisy counts."""
