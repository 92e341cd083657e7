"""How well a new tagger does on the part of the labelled text that it was not trained on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tasks.corpora.words import word_spans
from tasks.labelled_text.labelled_lines import read_labelled
from tasks.masking.settings import CrfTagger, SpacyTagger
from tasks.masking.taggers.tagger_kinds import load_tagger
from tasks.masking_evaluation.rates import rates


def held_out_scores(
    kind: str, folder: str | Path, path: str | Path, class_of: Callable[[str], str | None]
) -> dict[str, Any]:
    """Recall, precision and F2 of words, whatever their type; undefined is ``None``.

    The same definitions as ``evaluate-masking``'s token level, without its mapping of types.
    """
    settings = (
        CrfTagger(kind="crf", model=str(folder)) if kind == "crf" else SpacyTagger(kind="spacy", model=str(folder))
    )
    tagger = load_tagger(settings, threads=1)
    lines = list(read_labelled(path))
    found = private = masked = 0
    for line, (_, entities) in zip(lines, tagger.tag(line.text for line in lines), strict=True):
        wanted = [span for span in line.spans if class_of(span.label) is not None]
        for start, end in word_spans(line.text):
            is_private = any(span.start < end and start < span.end for span in wanted)
            is_masked = any(span.start < end and start < span.end for span in entities)
            private += is_private
            masked += is_masked
            found += is_private and is_masked
    return {
        "test_lines": len(lines),
        **{f"test_{name}": value for name, value in rates(found, private, found, masked).items()},
    }
