"""The ``params.yaml`` that ships, and one in the working folder with other sections."""

from pathlib import Path

import yaml


def parameters():
    """The document that ships."""
    return yaml.safe_load((Path(__file__).parents[1] / "params.yaml").read_text(encoding="utf-8"))


def write_parameters(folder=Path(), **sections):
    """Write ``params.yaml`` with these sections in place of those that ship; returns its path."""
    path = Path(folder, "params.yaml")
    path.write_text(yaml.safe_dump(parameters() | sections), encoding="utf-8")
    return str(path)
