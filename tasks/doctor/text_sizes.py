"""How much text the corpora of an experiment have: from reports, from settings and files, or by assumption."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.corpora.sources.open_source import open_source
from tasks.errors import CorpusError
from tasks.parameters.parameter_file import Parameters
from tasks.settings.checks import as_plain

_WORDS_PER_SENTENCE = {"fisher": 10, "pushshift": 17, "wsj": 18, "wikitext": 22, "chitchat": 13, "encyclopedia": 18}
_ASSUMED_WORDS_PER_SENTENCE = 15
_BYTES_PER_WORD = 6
_WIKITEXT_103_SENTENCES = 3_700_000
_ASSUMED_SENTENCES = 1_000_000

_MASKED_SHARES = {
    "fisher": {"allow_list": 0.125, "vocabulary_threshold": 0.013, "entity_tagger": 0.017},
    "pushshift": {"allow_list": 0.227, "vocabulary_threshold": 0.119, "entity_tagger": 0.042},
    "wsj": {"allow_list": 0.304, "vocabulary_threshold": 0.112, "entity_tagger": 0.091},
}
"""Table 2 of the paper."""
_ASSUMED_MASKED_SHARES = {"allow_list": 0.17, "vocabulary_threshold": 0.12, "entity_tagger": 0.04, "combination": 0.2}


@dataclass(frozen=True, slots=True)
class TextSize:
    """Sentences and words of one corpus."""

    train_sentences: int
    train_words: int
    test_sentences: int
    test_words: int
    basis: str


def text_sizes(parameters: Parameters, root: Path) -> dict[str, TextSize]:
    """By corpus; the generic text is ``generic``."""
    corpora = {"generic": parameters.generic}
    corpora |= {name: parameters.corpora[name] for name in parameters.compare.datasets}
    return {name: _size(name, settings, root) for name, settings in corpora.items()}


def masked_share(corpus_kind: str, technique_kind: str) -> float:
    """Share of the words that a technique masks, as the paper found it or as other text suggests."""
    return (
        _MASKED_SHARES.get(corpus_kind, _ASSUMED_MASKED_SHARES)[technique_kind]
        if (technique_kind in _MASKED_SHARES.get(corpus_kind, {}))
        else _ASSUMED_MASKED_SHARES[technique_kind]
    )


def _size(name: str, settings: Any, root: Path) -> TextSize:
    report = _report(name, root)
    if report is not None and report.get("parameters") == as_plain(settings):
        sentences, words = report["measured"]["sentences"], report["measured"]["words"]
        return TextSize(sentences["train"], words["train"], sentences["test"], words["test"], "counted")
    length = _WORDS_PER_SENTENCE.get(settings.kind, _ASSUMED_WORDS_PER_SENTENCE)
    test = settings.cleaning.test_sentences
    limit = settings.cleaning.train_sentences
    if settings.kind == "wikitext":
        found, basis = _WIKITEXT_103_SENTENCES, "as published"
    elif (by_files := _by_files(settings, root, length)) is not None:
        found, basis = max(by_files - test, 1), "by the size of the files"
    else:
        found, basis = limit or _ASSUMED_SENTENCES, "by the settings" if limit else "assumed"
    train = min(found, limit or found)
    return TextSize(train, train * length, test, test * length, basis)


def _by_files(settings: Any, root: Path, length: int) -> int | None:
    if settings.kind in ("pushshift", "wsj"):
        return None
    try:
        source = open_source(settings.model_copy(update={"source": str(root / settings.source)}))
    except CorpusError:
        return None
    return sum(Path(file).stat().st_size for file in source.files) // (_BYTES_PER_WORD * length)


def _report(name: str, root: Path) -> dict[str, Any] | None:
    try:
        report = json.loads((root / "results" / "reports" / "corpora" / f"{name}.json").read_text(encoding="utf-8"))
        return report if isinstance(report, dict) and "measured" in report else None
    except (OSError, ValueError):
        return None
