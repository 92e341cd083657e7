"""Result of one check of ``palimpsest doctor``, and readable byte counts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

State = Literal["there", "missing", "made later"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One requirement of an experiment."""

    area: Literal["data", "model", "machine"]
    name: str
    """Name: a key of ``params.yaml``, or part of the machine."""
    state: State
    """State; ``made later``: the graph itself makes it."""
    detail: str
    """Description of the existing or missing thing; no text of a corpus."""
    remedy: str | None = None
    """Remedy: how to get the missing thing, and its exact place."""

    @property
    def text(self) -> str:
        """The finding in one line, with the remedy."""
        return f"{self.name}: {self.detail}" + (f"; {self.remedy}" if self.remedy else "")


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    key: str
    """Key path in ``params.yaml``; without a stage that reads it the check is unnecessary."""
    look: Callable[[], Finding]
    source: str | None = None
    """File or folder of the check; without a stage that reads it the check is unnecessary too."""


def bytes_text(count: float) -> str:
    """``1.5 GB`` for a number of bytes, in powers of 1,000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
