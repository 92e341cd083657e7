"""How well filled text reads."""
