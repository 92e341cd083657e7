"""The folder of a conditional random field: ``model.crfsuite``, ``clusters.tsv`` and ``tagger.json``.

``tagger.json`` says which entity types the model has, with which features it was trained, and the SHA-256 of the two
other files: a damaged model is named as such before it is read by compiled code.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import ModelError, ParameterError
from tasks.files.atomic_file import PUBLIC_MODE, atomic_folder
from tasks.masking.taggers.crf_features import VERSION

MODEL_FILE, CLUSTERS_FILE, DESCRIPTION_FILE = "model.crfsuite", "clusters.tsv", "tagger.json"


@dataclass(frozen=True)
class CrfFolder:
    """A folder that has been checked."""

    model: Path
    clusters: Mapping[str, tuple[str, ...]]
    """Folded word to its cluster features."""
    entity_types: list[str]


def check_crf_folder(path: str | Path) -> None:
    """Refuse to write over a folder that is no such model; ``ParameterError`` names it."""
    folder = Path(path)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not (folder / DESCRIPTION_FILE).exists()):
        raise ParameterError(
            f"--output {str(path)!r} exists and is no tagger; name a folder that is new, empty or a tagger's"
        )


def write_crf_folder(
    path: str | Path, model: Path, clusters: Mapping[str, tuple[str, ...]], description: Mapping[str, Any]
) -> None:
    """Write the folder; an earlier one stays until the new one is complete. ``description`` needs ``entity_types``."""
    check_crf_folder(path)
    with atomic_folder(path) as fresh:
        (fresh / MODEL_FILE).write_bytes(model.read_bytes())
        table = "".join(f"{word}\t{' '.join(features)}\n" for word, features in sorted(clusters.items()))
        (fresh / CLUSTERS_FILE).write_text(table, encoding="utf-8", newline="\n")
        hashes = {name: _sha256(fresh / name) for name in (MODEL_FILE, CLUSTERS_FILE)}
        content = {"kind": "crf", "features": VERSION, **description, "sha256": hashes}
        (fresh / DESCRIPTION_FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        for file in fresh.iterdir():
            file.chmod(PUBLIC_MODE)


def read_crf_folder(path: str | Path) -> CrfFolder:
    """Check and read a folder; ``ModelError`` says what is missing or damaged, and what to do."""
    folder = Path(path)
    if not folder.is_dir():
        raise ModelError(
            f"CRF model {str(path)!r} is no folder; train one with 'palimpsest train-tagger', or give the folder of one"
        )
    for name in (DESCRIPTION_FILE, MODEL_FILE, CLUSTERS_FILE):
        if not (folder / name).is_file():
            raise ModelError(f"CRF model {str(path)!r}: the file {name!r} is missing; train the model again")
    try:
        description = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        hashes, version, entity_types = description["sha256"], description["features"], description["entity_types"]
    except (ValueError, KeyError, TypeError):
        raise ModelError(
            f"CRF model {str(path)!r}: {DESCRIPTION_FILE!r} is no description of a CRF model; train the model again"
        ) from None
    if version != VERSION:
        raise ModelError(
            f"CRF model {str(path)!r} was trained on features of version {version!r}, this is version {VERSION!r}; "
            "train the model again"
        )
    for name in (MODEL_FILE, CLUSTERS_FILE):
        if _sha256(folder / name) != hashes.get(name):
            raise ModelError(
                f"CRF model {str(path)!r}: the file {name!r} is not the one that was written (SHA-256 differs); "
                "train the model again"
            )
    clusters = {}
    for line in (folder / CLUSTERS_FILE).read_text(encoding="utf-8").splitlines():
        word, _, features = line.partition("\t")
        clusters[word] = tuple(features.split(" "))
    return CrfFolder(folder / MODEL_FILE, clusters, list(entity_types))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
