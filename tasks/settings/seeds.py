"""Seeds: numbers that NumPy and PyTorch both accept."""

from typing import Annotated

from pydantic import Field

from tasks.errors import ParameterError

_LIMIT = 2**63

Seed = Annotated[int, Field(ge=0, lt=_LIMIT)]
"""The type of a seed among settings."""


def check_seed(seed: int | None) -> None:
    """Raise ``ParameterError`` if the value of ``--seed`` is out of bounds."""
    if seed is not None and not 0 <= seed < _LIMIT:
        raise ParameterError(f"--seed {seed!r} is not allowed; use a whole number from 0 to 2**63 - 1")
