"""A cell of the experiment: one dataset, technique, method, filler and seed."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Cell:
    """The cell of a number; ``None`` if a dimension does not apply (Oracle has no technique)."""

    dataset: str | None = None
    technique: str | None = None
    method: str | None = None
    filler: str | None = None
    seed: int | None = None

    @property
    def path(self) -> str:
        """The relative path, without ending, of the cell's files in ``dvc.yaml``:
        ``chat/allow_list/minilm-top_k-1``, ``chat/oracle-1``, ``chat/pretrained``."""
        name = "-".join(str(part) for part in (self.filler, self.method, self.seed) if part is not None)
        return "/".join(part for part in (self.dataset, self.technique, name) if part is not None)

    def as_dict(self) -> dict[str, Any]:
        """All five dimensions by name."""
        return asdict(self)
