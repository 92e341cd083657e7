"""A cell of the experiment: one dataset, technique, method, filler and seed, and the options that name it."""

import argparse
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Cell:
    """What a number belongs to; ``None`` where a dimension does not apply (Oracle has no technique)."""

    dataset: str | None = None
    technique: str | None = None
    method: str | None = None
    filler: str | None = None
    seed: int | None = None

    @property
    def path(self) -> str:
        """Relative path without ending under which ``dvc.yaml`` keeps the cell's files:
        ``chat/allow_list/minilm-top_k-1``, ``chat/oracle-1``, ``chat/pretrained``."""
        name = "-".join(str(part) for part in (self.filler, self.method, self.seed) if part is not None)
        return "/".join(part for part in (self.dataset, self.technique, name) if part is not None)

    def as_dict(self) -> dict[str, Any]:
        """All five dimensions by name."""
        return asdict(self)


def add_cell_options(parser: argparse.ArgumentParser, *dimensions: str) -> None:
    """Options that say to which cell of an experiment a report belongs."""
    group = parser.add_argument_group("cell", "what the report says it belongs to; change no result unless said above")
    help_of = {
        "dataset": "name of the private corpus",
        "technique": "name of the masking technique",
        "method": "name of the filling method or baseline",
        "filler": "name of the filler",
        "seed": "seed of the cell",
    }
    for dimension in dimensions:
        kind = int if dimension == "seed" else str
        group.add_argument(f"--{dimension}", type=kind, default=None, help=help_of[dimension])


def cell_of(arguments: argparse.Namespace) -> Cell:
    """The cell that the options name."""
    return Cell(**{name: getattr(arguments, name, None) for name in Cell.__dataclass_fields__})
