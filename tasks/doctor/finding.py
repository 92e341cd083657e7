"""What one check of ``palimpsest doctor`` found, and bytes as people read them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["there", "missing", "made later"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that an experiment needs."""

    area: Literal["data", "model", "package", "machine"]
    name: str
    """What it is called: a key of ``params.yaml``, a package, or part of the machine."""
    state: State
    """``made later``: the graph itself makes it."""
    detail: str
    """What is there, or what is not; no text of a corpus."""
    remedy: str | None = None
    """How to get what is missing, and where exactly to put it."""

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return asdict(self)

    @property
    def text(self) -> str:
        """In one line, with the remedy."""
        return f"{self.name}: {self.detail}" + (f"; {self.remedy}" if self.remedy else "")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look for."""

    key: str
    """Key path in ``params.yaml``; who has no stage that reads it needs not look."""
    look: Callable[[], Finding]
    source: str | None = None
    """File or folder that it is about: who has no stage that reads it needs not look either."""


def bytes_text(count: float) -> str:
    """``1.5 GB`` of a number of bytes, in powers of 1,000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
