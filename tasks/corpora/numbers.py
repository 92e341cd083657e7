"""Numbers as they stand in files that users hand in: what is too large for a machine's number is none."""

import math

_MOST_DIGITS = 18
"""Of a whole number: each is below 2 to the power of 63."""


def whole_number(text: str) -> int | None:
    """The number of at most 18 digits 0 to 9; ``None`` for anything else."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else None


def finite_number(value: object) -> float | None:
    """A number of JSON; ``None`` for NaN, infinity, what no float can hold, truth values and all that is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
