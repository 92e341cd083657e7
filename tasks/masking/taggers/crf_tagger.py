"""A conditional random field (Lafferty, McCallum, Pereira 2001) as tagger; ``palimpsest train-tagger`` makes one.

A word is tagged where the probability that it belongs to any entity, one minus its marginal probability of being
outside, is at least ``minimum_probability``. The most probable path alone would miss too much: missing a private word
is worse than masking one too many. The F2 measure says so, and is highest far below one half: for true probabilities a
word is worth masking from F2 / 5 on (Lipton, Elkan, Narayanaswamy 2014 show it for F1: F1 / 2). Its type is the most
probable one; neighbours of one type are one entity, whose score is the mean of its words' probabilities.

The folder of a conditional random field: ``model.crfsuite``, ``clusters.tsv`` and ``tagger.json``.

``tagger.json`` says which entity types the model has, with which features it was trained, and the SHA-256 of the two
other files: a damaged model is named as such before it is read by compiled code.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import ModelError, ParameterError
from tasks.files.atomic_file import PUBLIC_MODE, atomic_folder
from tasks.masking.settings import CrfTagger
from tasks.masking.taggers.crf_features import VERSION, CrfFeatures, tokens_of
from tasks.masking.taggers.tagger import EntitySpan, Tagger, windows
from tasks.model_source import PACKAGE_PREFIX, locate_model

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


OUTSIDE = "O"
_LONGEST = 4000
_OVERLAP = 200


def _located(model: str) -> str:
    """A folder inside a package is looked up; any other path is taken as it is, since no hub has such models."""
    return locate_model(model) if model.startswith(PACKAGE_PREFIX) else model


_Tagged = tuple[int, int, str, float]
"""Start, end, entity type and probability of a word."""


class CrfModel(Tagger):
    """A loaded model."""

    def __init__(self, settings: CrfTagger) -> None:
        """``ModelError`` where the model is not there, damaged, or of other features."""
        import pycrfsuite

        folder = read_crf_folder(_located(settings.model))
        shipped = settings.model == CrfTagger(kind="crf").model
        self.name = "crf:shipped" if shipped else f"crf:{settings.model}"
        self.languages = ("en",) if shipped else ()
        self._minimum = settings.minimum_probability
        self._types = folder.entity_types
        self._features = CrfFeatures(folder.clusters)
        self._model = pycrfsuite.Tagger()
        self._model.open(str(folder.model))
        known = set(self._model.labels())
        self._labels = [
            (entity_type, [label for label in (f"B-{entity_type}", f"I-{entity_type}") if label in known])
            for entity_type in self._types
        ]

    @property
    def entity_types(self) -> list[str]:
        """The types that the model was trained with."""
        return sorted(self._types)

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Each line with its entities; long lines are seen in overlapping windows."""
        for line in lines:
            tagged: list[_Tagged] = []
            for window in windows(line, _LONGEST, _OVERLAP):
                for start, end, entity_type, probability in self._words(line[window.start : window.end]):
                    if window.core_start <= window.start + start < window.core_end:
                        tagged.append((window.start + start, window.start + end, entity_type, probability))
            yield line, _entities(line, tagged)

    def _words(self, text: str) -> Iterator[_Tagged]:
        """The words of a text that are tagged."""
        tokens = tokens_of(text)
        if not any(is_word for _, _, is_word in tokens):
            return
        model = self._model
        model.set(self._features(text, tokens))
        for index, (start, end, is_word) in enumerate(tokens):
            if not is_word:
                continue
            probability = 1.0 - model.marginal(OUTSIDE, index)
            if probability >= self._minimum:
                _, entity_type = max(
                    (sum(model.marginal(label, index) for label in labels), name) for name, labels in self._labels
                )
                yield start, end, entity_type, min(probability, 1.0)


def _entities(line: str, tagged: list[_Tagged]) -> list[EntitySpan]:
    """Neighbouring words of one type, with nothing but white space between them, as one entity."""
    spans: list[EntitySpan] = []
    run: list[_Tagged] = []
    for word in tagged:
        if run and (word[2] != run[0][2] or not line[run[-1][1] : word[0]].isspace()):
            spans.append(_entity(run))
            run = []
        run.append(word)
    if run:
        spans.append(_entity(run))
    return spans


def _entity(run: list[_Tagged]) -> EntitySpan:
    return EntitySpan(run[0][0], run[-1][1], run[0][2], sum(word[3] for word in run) / len(run))
