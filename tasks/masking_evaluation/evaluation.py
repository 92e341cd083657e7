"""All scores of an evaluation: a technique on one or several gold files, and on text without anything private.

The protocol (its one line is the ``signature``, stored next to each score):

- ``unit=word``: words of ``tasks.corpora.words``;
- ``gold=touched``: a word is private if a private span covers at least one of its characters;
- ``match=every_word``: a span, entity or document is found if every one of its words is masked, and a run of masked
  words, or all of a document's, is right if every one is private (``levels.py``);
- ``runs=space``: masked words that only white space separates are one run;
- ``entity=folded_words+class``: two spans are one entity if these are equal;
- ``f=2``: F2 of ``judged_line.py``;
- ``ci=documents``: intervals by bootstrap over documents;
- ``version``: of these rules.

Several gold files are one gold set: their words are pooled.
"""

import importlib.util
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.corpora.text_lines import read_lines
from tasks.corpora.words import count_words
from tasks.labelled_text.labelled_lines import LabelledLine
from tasks.masking.combination import Combination
from tasks.masking.every_tagger import EveryTagger
from tasks.masking.lists.allow_list import SHIPPED_LIST, AllowList
from tasks.masking.settings import QuasiIdentifierTagger, TechniqueSettings
from tasks.masking.taggers.entity_tagger import EntityTagger
from tasks.masking.taggers.tagger_folder import base_of
from tasks.masking.technique import Finding, Technique
from tasks.masking_evaluation.judged_line import JudgedLine, judged_lines, share
from tasks.masking_evaluation.label_classes import LabelMapping, MaskingEvaluationSettings
from tasks.masking_evaluation.levels import (
    document_scores,
    entity_scores,
    over_masking,
    per_type,
    span_scores,
    token_intervals,
    token_scores,
    typed_scores,
)

SIGNATURE = (
    "masking|unit=word|gold=touched|match=every_word|runs=space|entity=folded_words+class|f=2|ci=documents|version=1"
)
_SPLITS = ("train", "valid", "validation", "dev", "development", "test")


@dataclass(frozen=True)
class GoldFile:
    """A labelled file in memory."""

    path: str
    lines: list[LabelledLine]

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return Path(self.path).stem

    @property
    def split(self) -> str | None:
        """The split of a corpus in the end of the name (``web_english_dev.jsonl``); ``None`` if it has none."""
        last = self.name.lower().replace("-", "_").rpartition("_")[2]
        return last if last in _SPLITS else None


class TimedTechnique:
    """A technique whose time to find words is measured: all work of masking except writing the markers."""

    def __init__(self, technique: Technique) -> None:
        self._technique = technique
        self.words, self.seconds = 0, 0.0

    def find(self, texts: Sequence[str]) -> list[tuple[str, list[Finding]]]:
        """The findings in each text."""
        begun = time.perf_counter()
        found = list(self._technique.findings(texts))
        self.seconds += time.perf_counter() - begun
        self.words += sum(map(count_words, texts))
        return found


def judge_files(technique: TimedTechnique, files: Sequence[GoldFile], mapping: LabelMapping) -> list[list[JudgedLine]]:
    """The judged lines of each file."""
    return [
        list(judged_lines(file.lines, technique.find([line.text for line in file.lines]), mapping, place))
        for place, file in enumerate(files)
    ]


def over_masking_of_clean_text(technique: TimedTechnique, path: str) -> dict[str, Any]:
    """The share of words masked in a text without anything private, one sentence a line."""
    found = technique.find(list(read_lines(path)))
    words = sum(count_words(line) for line, _ in found)
    masked = sum(len(findings) for _, findings in found)
    return {"masked_share": share(masked, words), "lines": len(found), "words": words, "masked_words": masked}


def scores(
    files: Sequence[GoldFile],
    judged: Sequence[Sequence[JudgedLine]],
    mapping: LabelMapping,
    settings: MaskingEvaluationSettings,
) -> dict[str, Any]:
    """Every score that does not depend on the machine; contains no text."""
    lines = [line for of_file in judged for line in of_file]
    labels = Counter(span.label for file in files for line in file.lines for span in line.spans)
    ignored: Counter[str] = sum((line.ignored_spans for line in lines), Counter())
    annotated = {name for label in labels if mapping.is_private(label) and (name := mapping.class_of(label))}
    found = {finding.label for line in lines for finding in line.findings if finding is not None}
    out_of_scope = sorted(found - annotated - {"MASK"})
    token = token_scores(lines)
    in_scope = token_scores(lines, out_of_scope)
    words = sum(len(line.words) for line in lines)
    intervals = token_intervals(lines, settings.bootstrap_samples, settings.confidence, settings.seed)
    return {
        "token": token | intervals,
        "token_in_scope": {
            **in_scope,
            "words_out_of_scope": token["masked_words"] - in_scope["masked_words"],
            "classes_out_of_scope": out_of_scope,
        },
        "span": span_scores(lines),
        "entity": entity_scores(lines),
        "document": document_scores(lines),
        "per_type": per_type(lines),
        "typed": typed_scores(lines),
        "lines_without_private_words": over_masking(lines),
        "lines": len(lines),
        "words": words,
        "private_words": token["gold_words"],
        "masked_fraction": share(token["masked_words"], words),
        "spans_without_words": sum(line.spans_without_words for line in lines),
        "labels_not_in_gold": sorted(label for label in mapping.own if label not in labels),
        "unmapped_labels": mapping.unmapped(labels),
        "ignored_spans": dict(sorted(ignored.items())),
        "confidence": settings.confidence,
        "signature": SIGNATURE,
        "files": [{"name": file.name, "split": file.split} for file in files],
    }


def model_size(chosen_files: list[str], settings: TechniqueSettings) -> int | None:
    """The bytes of the files of a technique; ``None`` if it needs none or they cannot be found.

    ``chosen_files`` are the files in the options (lists, word counts). A file that several parts of a combination share
    is counted once.
    """
    places = [place for place in {*map(Path, chosen_files), *_places(settings)} if place.exists()]
    return sum(map(_bytes_of, places)) if places else None


def _places(settings: TechniqueSettings) -> set[Path]:
    if isinstance(settings, AllowList):
        return {Path(settings.path or SHIPPED_LIST)}
    if isinstance(settings, EntityTagger) and not isinstance(settings.tagger, QuasiIdentifierTagger):
        kind, model = settings.tagger.kind, settings.tagger.model
        models = [model, base_of(model)] if kind == "word_classifier" else [model]
        return {place for one in models if (place := _place_of_model(kind, one))}
    if isinstance(settings, Combination | EveryTagger):
        return {place for part in settings.parts for place in _places(part)}
    return set()


def _place_of_model(kind: str, model: str) -> Path | None:
    """The folder of a model: itself, an installed pipeline, inside a package, or a hub model in the local cache."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    from tasks.model_source import locate_model

    if kind in ("spacy", "presidio") and not Path(model).exists():
        specification = importlib.util.find_spec(model) if model.isidentifier() else None
        places = specification.submodule_search_locations if specification else None
        return Path(places[0]) if places else None
    located = locate_model(model)
    if Path(located).exists():
        return Path(located)
    try:
        return Path(snapshot_download(located, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def _bytes_of(place: Path) -> int:
    files = [place] if place.is_file() else place.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file() and "__pycache__" not in file.parts)
