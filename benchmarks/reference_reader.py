"""How many identifiers the reference reader finds in labelled text, and how many of its findings are right.

    python -m benchmarks.reference_reader DATA

``DATA/gold`` holds labelled lines (JSON lines with ``text`` and ``spans``), ``DATA/persons/entity_tab.jsonl`` court
decisions of the Text Anonymization Benchmark (Pilán et al. 2022) with their spans. The decisions are read sentence by
sentence; entities that the annotators marked ``NO_MASK`` are no identifiers. The figures go to
``tasks/review/reader_accuracy.json``, by which ``palimpsest unmasked`` corrects the reader's counts.

- ``words``: a word is private where an identifier touches it; whatever its class.
- ``direct``, ``quasi``: precision is the share of the reader's mentions that share a word with an identifier of their
  sort. Recall is the share of identifiers of the sort that are found whole, by whatever class.

Intervals are at 95 %, by a bootstrap over documents.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.readme_tables import rounded
from tasks.audit.figure import share_figure
from tasks.corpora.masked_text import DIRECT_IDENTIFIERS
from tasks.corpora.words import word_spans
from tasks.labelled_text.labelled_lines import read_labelled
from tasks.masking.every_tagger import EveryTagger
from tasks.masking.technique import Technique
from tasks.masking_evaluation.label_classes import LabelMapping
from tasks.review.reader import ACCURACY, mentions

TRAINED_ON = "the shipped word_classifier and crf learned from this very text: its figures flatter"
GOLD = {
    "web_english_dev": ("web English (UNER EWT, dev part)", TRAINED_ON),
    "social_media_dev": ("social media (WNUT 2017, dev part)", TRAINED_ON),
    "synthetic_pii_dev": ("synthetic sentences (presidio-research, dev part)", TRAINED_ON),
}
TAB = (
    "court decisions (TAB, 96 decisions)",
    "no shipped model learned from it; the form of file numbers was written after it was read",
)
SET_ASIDE = "measured once on a part set aside, words alone"
"""Note of the figures that stay as they are."""
_TAB_DIRECT = ("PERSON", "CODE")
_GAP = re.compile(r"\n+|(?<=[.;:?!”])\s+(?=[A-Z“(])")
_NO_END = re.compile(r"(?:^|[\s(“])(?:[A-Z]|Mr|Mrs|Ms|Dr|Art|nos?|v)\.$")


class GoldLine(NamedTuple):
    """A line, and the identifiers in it: start, end, and whether it identifies directly."""

    text: str
    document: str
    identifiers: Sequence[tuple[int, int, bool]]


def main(data: Path) -> None:
    """Measure all sets and write the file."""
    reader = EveryTagger(kind="every_tagger").build(None, threads=1)
    sets = [(*about, False, gold_lines(data / "gold" / f"{stem}.jsonl")) for stem, about in GOLD.items()]
    sets.append((*TAB, True, tab_lines(data / "persons/entity_tab.jsonl")))
    kinds = [{"name": name, "unseen": new, "note": note, **accuracy(reader, gold)} for name, note, new, gold in sets]
    kinds += [kind for kind in json.loads(ACCURACY.read_text(encoding="utf-8"))["kinds"] if kind["note"] == SET_ASIDE]
    ACCURACY.write_text(json.dumps({"reader": "every_tagger", "kinds": kinds}, indent=1) + "\n", encoding="utf-8")


def accuracy(reader: Technique, gold: Iterable[GoldLine]) -> dict[str, Any]:
    """Figures of one set."""
    lines = list(gold)
    # Hits and places by document.
    counts: dict[tuple[str, str], dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    words = 0
    for line, (text, findings) in zip(lines, reader.findings(line.text for line in lines), strict=True):
        spans = word_spans(text)
        words += len(spans)
        of = [[word for word in spans if word[0] < end and start < word[1]] for start, end, _ in line.identifiers]
        private = {word for identifier in of for word in identifier}
        found = {(finding.start, finding.end) for finding in findings}
        counts["words", "precision"][line.document] += (word in private for word in found)
        counts["words", "recall"][line.document] += (word in found for word in private)
        for sort, is_direct in (("direct", True), ("quasi", False)):
            pairs = zip(of, line.identifiers, strict=True)
            ours = [each for each, (_, _, direct) in pairs if direct == is_direct and each]
            theirs = [m for m in mentions(text, findings) if (m[0].label in DIRECT_IDENTIFIERS) == is_direct]
            right = {word for identifier in ours for word in identifier}
            counts[sort, "recall"][line.document] += (found.issuperset(identifier) for identifier in ours)
            counts[sort, "precision"][line.document] += (any((w.start, w.end) in right for w in m) for m in theirs)
    sized: dict[str, Any] = {"lines": len(lines), "words_in_all": words}
    for (sort, part), hits in sorted(counts.items()):
        each = [own for own in hits.values() if own]
        figure = share_figure([*map(sum, each)], [*map(len, each)], "")
        own = {part: figure.value, f"{part}_ci": figure.interval, f"{part}_places": figure.places}
        sized.setdefault(sort, {}).update(rounded(own))
    return sized


def gold_lines(path: Path) -> Iterator[GoldLine]:
    """Labelled lines."""
    mapping = LabelMapping({})
    for line in read_labelled(path):
        spans = [(span.start, span.end, mapping.class_of(span.label) in DIRECT_IDENTIFIERS) for span in line.spans]
        yield GoldLine(line.text, line.document or str(line.number), spans)


def tab_lines(path: Path) -> Iterator[GoldLine]:
    """Court decisions sentence by sentence."""
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines()):
        record = json.loads(raw)
        masked = [entity for entity in record["entities"] if entity["identifier_type"] != "NO_MASK"]
        spans = [(one["start_offset"], one["end_offset"], one["entity_type"] in _TAB_DIRECT) for one in masked]
        for begin, sentence in sentences(record["text"]):
            end = begin + len(sentence)
            inside = [(s - begin, min(e, end) - begin, direct) for s, e, direct in spans if begin <= s < end]
            yield GoldLine(sentence, str(number), inside)


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a decision in one line each, with the place of their first character."""
    begin = 0
    found = [gap.span() for gap in _GAP.finditer(text)]
    gaps = [gap for gap in found if not _NO_END.search(text[max(gap[0] - 6, 0) : gap[0]])]
    for end, after in [*gaps, (len(text), len(text))]:
        if end > begin:
            yield begin, text[begin:end].replace("\n", " ")
        begin = after


if __name__ == "__main__":
    main(Path(sys.argv[1]))
