"""An n-gram model on disk: one ARPA file for each model of the mixture, ``vocabulary.txt`` and ``settings.json``.

The files stay apart with their weights in ``settings.json``, rather than one merged file: that mixture is the one that
was weighted and measured, an adaptation writes its own few megabytes and copies the rest, and DVC's cache holds the
generic model, the same bytes in every folder, once. KenLM reads each file by itself.
"""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from tasks.errors import ModelError
from tasks.files.atomic_file import PRIVATE_MODE, PUBLIC_MODE, atomic_folder, atomic_writer
from tasks.language_model.model_folder import SETTINGS, VOCABULARY, check_replaceable
from tasks.language_model.ngram.arpa import read_arpa, write_arpa
from tasks.language_model.ngram.backoff_model import BackoffModel
from tasks.language_model.ngram.mixture import NgramMixture
from tasks.language_model.settings import Kind
from tasks.language_model.vocabulary import Vocabulary, read_vocabulary

KIND: Kind = "ngram"
FORMAT = 1
_NAMES = ("generic.arpa", "adapted.arpa")


def save_new(folder: str | Path, model: BackoffModel, vocabulary: Vocabulary, *, private: bool = False) -> None:
    """Write a folder with one model; an earlier folder stays as it was until the new one is complete."""
    check_replaceable(folder)
    with atomic_folder(folder, private=private) as fresh:
        write_arpa(fresh / _NAMES[0], model, vocabulary, private=private)
        _finish(fresh, [(_NAMES[0], 1.0)], vocabulary, private)


def save_adapted(
    folder: str | Path, base: str | Path, model: BackoffModel, weight: float, vocabulary: Vocabulary, *, private: bool
) -> None:
    """Write a folder with the models of ``base`` and, mixed with them by ``weight``, one more."""
    check_replaceable(folder)
    with atomic_folder(folder, private=private) as fresh:
        parts = []
        for name, earlier in _parts(Path(base), read_settings(base)):
            shutil.copyfile(Path(base) / name, fresh / name)
            (fresh / name).chmod(PRIVATE_MODE if private else PUBLIC_MODE)
            parts.append((name, earlier * (1 - weight)))
        name = _NAMES[1] if len(parts) == 1 else f"adapted-{len(parts)}.arpa"
        write_arpa(fresh / name, model, vocabulary, private=private)
        _finish(fresh, [*parts, (name, weight)], vocabulary, private)


def _finish(fresh: Path, parts: list[tuple[str, float]], vocabulary: Vocabulary, private: bool) -> None:
    document = {
        "format": FORMAT,
        "kind": KIND,
        "vocabulary": vocabulary.hash,
        "models": [{"file": name, "weight": weight, "sha256": _hash(fresh / name)} for name, weight in parts],
        "files": sorted([VOCABULARY, SETTINGS, *(name for name, _ in parts)]),
    }
    with atomic_writer(fresh / VOCABULARY, private=private) as stream:
        stream.write("\n".join(vocabulary.tokens) + "\n")
    with atomic_writer(fresh / SETTINGS, private=private) as stream:
        stream.write(json.dumps(document, indent=2) + "\n")


def load(folder: str | Path) -> tuple[NgramMixture, Vocabulary]:
    """Read a folder.

    Raises ``ModelError`` where it is incomplete, of another format, or where a file is not the one it was saved with.
    """
    folder = Path(folder)
    document = read_settings(folder)
    vocabulary = read_vocabulary(folder / VOCABULARY)
    if vocabulary.hash != document["vocabulary"]:
        raise ModelError(
            f"model {str(folder / VOCABULARY)!r} is another model's: its hash is {vocabulary.hash[:12]}, the model "
            f"was saved with {str(document['vocabulary'])[:12]}; make the model again or fetch it again"
        )
    parts = _parts(folder, document)
    return NgramMixture([read_arpa(folder / name, vocabulary) for name, _ in parts], [w for _, w in parts]), vocabulary


def read_settings(folder: str | Path) -> dict[str, Any]:
    """What ``settings.json`` says of an n-gram model; ``ModelError`` where it is no such model's."""
    path = Path(folder) / SETTINGS
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        usable = document["kind"] == KIND and document["format"] == FORMAT
        usable = usable and all({"file", "weight", "sha256"} <= part.keys() for part in document["models"])
        usable = usable and isinstance(document["vocabulary"], str) and len(document["models"]) > 0
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        usable = False
    if not usable:
        raise ModelError(f"{str(path)!r} is not that of an n-gram model of format {FORMAT}; make the model again")
    return document


def _parts(folder: Path, document: dict[str, Any]) -> list[tuple[str, float]]:
    """File and weight of each model, once their hashes are seen to be right."""
    parts = []
    for part in document["models"]:
        path = folder / str(part["file"])
        if not path.is_file() or _hash(path) != part["sha256"]:
            raise ModelError(
                f"n-gram model {str(path)!r} is missing, damaged or another model's; make the model again or fetch it "
                "again"
            )
        parts.append((str(part["file"]), float(part["weight"])))
    return parts


def _hash(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
