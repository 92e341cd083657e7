"""How much text the corpora of an experiment have: from reports, from settings and files, or by assumption."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError
from tasks.parameters.parameter_file import Parameters
from tasks.settings.checks import as_plain

_WORDS_PER_SENTENCE = {"fisher": 10, "pushshift": 17, "wsj": 18, "wikitext": 22, "chitchat": 13, "encyclopedia": 18}
_ASSUMED_WORDS_PER_SENTENCE = 15
_BYTES_PER_WORD = 6
_WIKITEXT_103_SENTENCES = 3_700_000
_ASSUMED_SENTENCES = 1_000_000


@dataclass(frozen=True, slots=True)
class TextSize:
    """The training part of one corpus."""

    sentences: int
    words: int


def text_sizes(parameters: Parameters, root: Path) -> dict[str, TextSize]:
    """By corpus; the generic text is ``generic``."""
    corpora = {"generic": parameters.generic}
    corpora |= {name: parameters.corpora[name] for name in parameters.compare.datasets}
    return {name: _size(name, settings, root) for name, settings in corpora.items()}


def _size(name: str, settings: Any, root: Path) -> TextSize:
    report = _report(name, root)
    if report is not None and report.get("parameters") == as_plain(settings):
        return TextSize(report["measured"]["sentences"]["train"], report["measured"]["words"]["train"])
    length = _WORDS_PER_SENTENCE.get(settings.kind, _ASSUMED_WORDS_PER_SENTENCE)
    limit = settings.cleaning.train_sentences
    if settings.kind == "wikitext":
        found = _WIKITEXT_103_SENTENCES
    elif (by_files := _by_files(settings, root, length)) is not None:
        found = max(by_files - settings.cleaning.test_sentences, 1)
    else:
        found = limit or _ASSUMED_SENTENCES
    train = min(found, limit or found)
    return TextSize(train, train * length)


def _by_files(settings: Any, root: Path, length: int) -> int | None:
    if settings.kind in ("pushshift", "wsj"):
        return None
    try:
        source = settings.model_copy(update={"source": str(root / settings.source)}).open()
    except CorpusError:
        return None
    return sum(Path(file).stat().st_size for file in source.files) // (_BYTES_PER_WORD * length)


def _report(name: str, root: Path) -> dict[str, Any] | None:
    try:
        report = json.loads((root / "results" / "reports" / "corpora" / f"{name}.json").read_text(encoding="utf-8"))
        return report if isinstance(report, dict) and "measured" in report else None
    except (OSError, ValueError):
        return None
