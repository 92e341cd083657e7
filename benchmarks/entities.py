"""Entities that detectors find in public text, counted as in the shared tasks of CoNLL and WNUT.

    python -m benchmarks.entities DATA    # measures, and writes the last table of docs/detectors.md

``DATA/gold`` has the dev parts of WNUT 2017 and of the English Web Treebank of Universal NER. An entity is a row of
words of one class with nothing but spaces between them. It counts if its borders, or its borders and its class, are
those of the annotators. Findings of classes that a set does not annotate are left out. ``crf`` learned without the
held-out lines (``benchmarks.build_shipped``). The word classifier that ships has learned from them.
"""

import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.build_shipped import build_crf, write_held_out
from benchmarks.stored_numbers import publish, ran
from tasks.audit.figure import fields_of, share_figure
from tasks.labelled_text.labelled_lines import read_labelled
from tasks.masking.techniques import AnyTechnique
from tasks.masking_evaluation.label_classes import label_mapping
from tasks.persons.persons_command import percent
from tasks.results.grid import markdown, plain_grid
from tasks.review.reader import mentions
from tasks.settings.checks import check_settings

SETS = {"social_media_dev": "WNUT 2017, dev part", "web_english_dev": "English Web Treebank, half of the dev part"}
PUBLISHED = {
    "social_media_dev": [
        ["BERTweet (hub: socialmediaie/bertweet-base_wnut17_ner)", "–", "64.3"],
        ["the same, on the test part", "–", "55.1"],
        ["BERTweet, large, on the test part (hub: tner/bertweet-large-wnut2017)", "61.4", "53.0"],
    ],
    "web_english_dev": [["XLM-R, large, on the test part (Mayhew et al. 2024)", "–", "86"]],
}
"""Models tuned on the train parts: F1 of borders, and of borders and class, in per cent."""
HEADS = {
    "untyped_f1": "F1 of borders, %",
    "typed_f1": "F1 of borders and class, %",
    "typed_recall": "recall",
    "typed_precision": "precision",
}
Entity = tuple[int, int, str]


def main(data: Path) -> None:
    """Measure, store the numbers and write the table."""
    mapping, rows = label_mapping(None, "labels"), []
    with tempfile.TemporaryDirectory() as folder:
        held_out, crf = Path(folder) / "held_out", Path(folder) / "crf"
        write_held_out(data / "gold", held_out)
        build_crf(data / "gold", hold_out=True, output=crf)
        taggers = {
            "spacy, small": {"kind": "spacy"},
            "presidio": {"kind": "presidio"},
            "crf": {"kind": "crf", "model": str(crf)},
        }
        for name in SETS:
            gold = list(read_labelled(held_out / f"{name}.jsonl"))
            wanted = [{(s.start, s.end, str(mapping.class_of(s.label))) for s in line.spans} for line in gold]
            classes = {one[2] for entities in wanted for one in entities}
            for tagger, settings in taggers.items():
                found = list(entities_by(settings, [line.text for line in gold], classes))
                rows.append({"set": name, "by": tagger, **scores(wanted, found)})
    publish("entities", "docs/detectors.md", {"rows": rows}, table)


def entities_by(tagger: Mapping[str, Any], texts: Sequence[str], classes: Collection[str]) -> Iterator[set[Entity]]:
    """Entities of these classes that a tagger finds in each text."""
    settings = {"kind": "entity_tagger", "tagger": tagger}
    technique = check_settings(AnyTechnique, settings, "tagger").build(None, threads=1)
    for text, words in technique.findings(texts):
        yield {(m[0].start, m[-1].end, m[0].label) for m in mentions(text, words) if m[0].label in classes}


def scores(wanted: Sequence[set[Entity]], found: Sequence[set[Entity]]) -> dict[str, Any]:
    """F1 with and without the class, with intervals over lines, and recall and precision with the class."""
    figures = {}
    for kind, part in (("typed", 3), ("untyped", 2)):
        pairs = [({one[:part] for one in a}, {one[:part] for one in b}) for a, b in zip(wanted, found, strict=True)]
        right, gold, own = zip(*((len(a & b), len(a), len(b)) for a, b in pairs), strict=True)
        both = [a + b for a, b in zip(gold, own, strict=True)]
        figures[f"{kind}_f1"] = share_figure([2 * one for one in right], both, "")
        figures[f"{kind}_recall"] = share_figure(right, gold, "")
        figures[f"{kind}_precision"] = share_figure(right, own, "")
    return fields_of(figures)


def table(results: Mapping[str, Any]) -> str:
    """The Markdown of the page, from the stored numbers."""
    parts = []
    for name, title in SETS.items():
        lines = [[row["by"], *(percent(row, key) for key in HEADS)] for row in results["rows"] if row["set"] == name]
        lines += [[*each, "–", "–"] for each in PUBLISHED[name]]
        parts += [f"{title}:", markdown(plain_grid("", ["detector", *HEADS.values()], lines))]
    return "\n\n".join([*parts, ran(results)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
