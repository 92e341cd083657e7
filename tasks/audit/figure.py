"""What came of one attack: a number, its interval, and what the same attack finds where there is nothing to find."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of an audit. A share is between 0 and 1, exposure is in bits."""

    value: float | None
    """``None`` where there was nothing to attack."""
    interval: tuple[float, float] | None
    """Both ends; ``None`` where the value is exact, or there are too few places for one."""
    attacker: str
    """Who attacks, with what, in one line without a word of the text: figures of different ones do not compare."""
    blind: float | None = None
    """What the attack reaches without the text or model that it attacks: guesses by frequency, the model before it was
    adapted. ``None`` where there is no such attack, as of a count."""
    places: int = 0
    """Words, lines or canaries that the value is over."""

    def fields(self, name: str) -> dict[str, Any]:
        """As a report has them, below the name of the figure."""
        interval = list(self.interval) if self.interval is not None else None
        return {name: self.value, f"{name}_ci": interval, f"{name}_blind": self.blind, f"{name}_places": self.places}
