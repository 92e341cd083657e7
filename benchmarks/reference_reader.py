"""How many identifiers the reference reader finds in labelled text, and how many of its findings are right.

    python -m benchmarks.reference_reader DATA    # measures, and writes tasks/review/reader_accuracy.json

``DATA/gold`` holds labelled lines (JSON lines with ``text`` and ``spans``); ``benchmarks.court_texts`` describes the
court decisions, whose entities marked ``NO_MASK`` are no identifiers. By this file ``palimpsest unmasked`` corrects the
reader's counts.

- ``words``: a word is private where an identifier touches it; whatever its class.
- ``direct``, ``quasi``: precision is the share of the reader's mentions that share a word with an identifier of their
  sort. Recall is the share of identifiers of the sort that are found whole, by whatever class.

Intervals are at 95 %, by a bootstrap over documents.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.court_texts import annotated, sentences
from benchmarks.stored_numbers import rounded
from tasks.audit.figure import share_figure
from tasks.corpora.masked_text import DIRECT_IDENTIFIERS
from tasks.corpora.words import word_spans
from tasks.labelled_text.labelled_lines import read_labelled
from tasks.masking.every_tagger import EveryTagger
from tasks.masking.technique import Technique
from tasks.masking_evaluation.label_classes import LabelMapping
from tasks.review.reader import ACCURACY, mentions

GOLD = {
    "web_english_dev": "web English (UNER EWT, dev part)",
    "social_media_dev": "social media (WNUT 2017, dev part)",
    "synthetic_pii_dev": "synthetic sentences (presidio-research, dev part)",
}
TRAINED_ON = "the shipped word_classifier and crf learned from this very text: its figures flatter"
TAB = "court decisions (TAB, 96 decisions)"
NEW = "no shipped model learned from it; the form of file numbers was written after it was read"
SET_ASIDE = "measured once on a part set aside, words alone"
"""Note of the figures that stay as they are."""


class GoldLine(NamedTuple):
    """A line, and the identifiers in it: start, end, and whether it identifies directly."""

    text: str
    document: str
    identifiers: Sequence[tuple[int, int, bool]]


def main(data: Path) -> None:
    """Measure all sets and write the file."""
    reader = EveryTagger(kind="every_tagger").build(None, threads=1)
    kinds = [
        {"name": name, "unseen": False, "note": TRAINED_ON, **accuracy(reader, gold_lines(data / f"gold/{stem}.jsonl"))}
        for stem, name in GOLD.items()
    ]
    kinds.append({"name": TAB, "unseen": True, "note": NEW, **accuracy(reader, court_lines(data))})
    kinds += [kind for kind in json.loads(ACCURACY.read_text(encoding="utf-8"))["kinds"] if kind["note"] == SET_ASIDE]
    ACCURACY.write_text(json.dumps({"reader": "every_tagger", "kinds": kinds}, indent=1) + "\n", encoding="utf-8")


def accuracy(reader: Technique, gold: Iterable[GoldLine]) -> dict[str, Any]:
    """Figures of one set."""
    lines, words_in_all = list(gold), 0
    # By measure and document, whether each place is a hit.
    hits: dict[tuple[str, str], dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for line, (text, findings) in zip(lines, reader.findings(line.text for line in lines), strict=True):
        words = word_spans(text)
        words_in_all += len(words)
        found = {(finding.start, finding.end) for finding in findings}
        identifiers: dict[bool, list[list[tuple[int, int]]]] = {True: [], False: []}
        for start, end, direct in line.identifiers:
            identifiers[direct].append([word for word in words if word[0] < end and start < word[1]])
        private = {word for each in identifiers.values() for identifier in each for word in identifier}
        hits["words", "precision"][line.document] += (word in private for word in found)
        hits["words", "recall"][line.document] += (word in found for word in private)
        for sort, direct in (("direct", True), ("quasi", False)):
            theirs = [m for m in mentions(text, findings) if (m[0].label in DIRECT_IDENTIFIERS) == direct]
            right = {word for identifier in identifiers[direct] for word in identifier}
            hits[sort, "recall"][line.document] += (found.issuperset(each) for each in identifiers[direct] if each)
            hits[sort, "precision"][line.document] += (any((w.start, w.end) in right for w in m) for m in theirs)
    sized: dict[str, Any] = {"lines": len(lines), "words_in_all": words_in_all}
    for (sort, part), by_document in sorted(hits.items()):
        figure = share_figure([*map(sum, by_document.values())], [*map(len, by_document.values())], "")
        own = {part: figure.value, f"{part}_ci": figure.interval, f"{part}_places": figure.places}
        sized.setdefault(sort, {}).update(rounded(own))
    return sized


def gold_lines(path: Path) -> Iterator[GoldLine]:
    """Labelled lines."""
    mapping = LabelMapping({})
    for line in read_labelled(path):
        spans = [(span.start, span.end, mapping.class_of(span.label) in DIRECT_IDENTIFIERS) for span in line.spans]
        yield GoldLine(line.text, line.document or str(line.number), spans)


def court_lines(data: Path) -> Iterator[GoldLine]:
    """Court decisions sentence by sentence; names and codes identify directly."""
    for name, decision in annotated(data).items():
        masked = [one for one in decision["entities"] if one["identifier_type"] != "NO_MASK"]
        spans = [(one["start_offset"], one["end_offset"], one["entity_type"] in ("PERSON", "CODE")) for one in masked]
        for begin, sentence in sentences(decision["text"]):
            end = begin + len(sentence)
            inside = [(s - begin, min(e, end) - begin, direct) for s, e, direct in spans if begin <= s < end]
            yield GoldLine(sentence, name, inside)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
