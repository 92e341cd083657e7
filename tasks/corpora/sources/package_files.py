"""Text that comes inside installed pip packages, read without importing them."""

import importlib.util
import json
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError


def package_file(package: str, inside: str) -> Path:
    """A file inside an installed package; importing it could have side effects, so it is only located."""
    specification = importlib.util.find_spec(package)
    if specification is None or not specification.submodule_search_locations:
        raise CorpusError(
            f"the package {package!r}, which holds this corpus, is not installed; 'make install' installs it"
        )
    path = Path(specification.submodule_search_locations[0]) / inside
    if not path.is_file():
        raise CorpusError(
            f"the installed package {package!r} holds no {inside!r}; install the version in constraints.txt"
        )
    return path


def read_package_json(path: Path) -> Any:
    """Parse a JSON file of a package; ``CorpusError`` where it is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise CorpusError(
            f"{path.name!r} of an installed package is damaged: it is not JSON; install it again"
        ) from None
