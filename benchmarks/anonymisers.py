"""Techniques and other programs on court decisions, by the measures of the Text Anonymization Benchmark.

    python -m benchmarks.anonymisers DATA    # measures, and writes the first table of docs/research/anonymisers.md

The measures are those of Pilán et al. (2022), section 5.3 (``benchmarks.court`` describes DATA):

- Entity recall: an entity counts if every mention of it that needs masking is masked. A mention is masked if only
  titles, function words and punctuation are left of it.
- Token precision: the share of masked tokens that the annotator masked too. Tokens have no weights here.

Intervals are at 95 %, by a bootstrap over decisions.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.court import PEERS, Span, annotated, is_test, masked_by, spans_of
from benchmarks.readme_tables import publish, ran
from tasks.audit.figure import fields_of, share_figure
from tasks.persons.persons_command import percent
from tasks.results.grid import markdown, plain_grid

TECHNIQUES = ("every_tagger", "documents", "word_classifier", "crf", "presidio", "spacy, small", "allow_list")
_IGNORED = "mr mrs ms and or from until to about after as at before between by during for in into of on over since with"
_IGNORED += " the a an no nr ’s 's"
_OF_NO_CONTENT = re.compile(
    rf"\b(?:{'|'.join(map(re.escape, _IGNORED.split()))})\b|[,.\-;:/&()\[\]–'\" ’“”]", re.IGNORECASE
)
"""Words and signs that may be left of a masked mention, as in the benchmark's own program."""
_TOKEN = re.compile(r"\w+|[^\w\s]")
MEASURES = {
    "entities": "entity recall, %",
    "direct": "of direct identifiers",
    "quasi": "of quasi-identifiers",
    "precision": "token precision, %",
}
"""Measures with the heads of their columns."""


def main(data: Path) -> None:
    """Measure, store the numbers and write the table."""
    decisions = annotated(data)
    tested = {name: one for name, one in decisions.items() if is_test(one)}
    texts = {name: one["text"] for name, one in decisions.items()}
    by = {name: masked_by(name, texts) for name in TECHNIQUES}
    rows = [measured(name, of, spans) for of in (decisions, tested) for name, spans in by.items()]
    for file, name in PEERS.items():
        spans = spans_of(data, file)
        rows.append(measured(f"{name} (published)", tested, {of: [one[:2] for one in spans[of]] for of in tested}))
    publish("anonymisers", "docs/research/anonymisers.md", "anonymisers", {"rows": rows}, table)


def measured(by: str, decisions: Mapping[str, Any], spans: Mapping[str, Sequence[Span]]) -> dict[str, Any]:
    """A row: entity recall of both sorts of identifiers and of each, and token precision."""
    hits: dict[str, list[list[bool]]] = {measure: [] for measure in MEASURES}
    for name, decision in decisions.items():
        text, masked = decision["text"], characters(spans[name])
        gold = {sort: entities(decision["entities"], sort) for sort in ("direct", "quasi")}
        for sort, each in gold.items():
            hits[sort].append([all(is_masked(span, text, masked) for span in mentions) for mentions in each])
        hits["entities"].append(hits["direct"][-1] + hits["quasi"][-1])
        private = characters(span for each in gold.values() for mentions in each for span in mentions)
        tokens = [token.span() for start, end in spans[name] for token in _TOKEN.finditer(text, start, end)]
        hits["precision"].append([private.issuperset(range(*token)) for token in tokens])
    figures = {name: share_figure([*map(sum, each)], [*map(len, each)], "") for name, each in hits.items()}
    return {"by": by, "decisions": len(decisions), **fields_of(figures)}


def entities(mentions: Iterable[Mapping[str, Any]], sort: str) -> list[list[Span]]:
    """Mentions that need masking of each entity of a sort; it is ``direct`` if one of its mentions is."""
    by_entity: dict[str, list[Mapping[str, Any]]] = {}
    for mention in mentions:
        if mention["identifier_type"] != "NO_MASK":
            by_entity.setdefault(mention["entity_id"], []).append(mention)
    return [
        [(one["start_offset"], one["end_offset"]) for one in each]
        for each in by_entity.values()
        if any(one["identifier_type"] == "DIRECT" for one in each) == (sort == "direct")
    ]


def is_masked(span: Span, text: str, masked: set[int]) -> bool:
    """Whether only titles, function words and punctuation are left of a mention."""
    left = set(range(*span)) - masked
    found = _OF_NO_CONTENT.finditer(text[slice(*span)])
    return left <= characters((span[0] + one.start(), span[0] + one.end()) for one in found)


def characters(spans: Iterable[Span]) -> set[int]:
    """Places of all characters of the spans."""
    return {place for start, end in spans for place in range(start, end)}


def table(results: Mapping[str, Any]) -> str:
    """The Markdown tables of the page, from the stored numbers."""
    parts = []
    for number in sorted({row["decisions"] for row in results["rows"]}):
        rows = [row for row in results["rows"] if row["decisions"] == number]
        counted = rows[0]["entities_places"], rows[0]["direct_places"]
        parts.append("{} decisions, {:,} entities ({:,} direct):".format(number, *counted))
        lines = [[row["by"], *(percent(row, name) for name in MEASURES)] for row in rows]
        parts.append(markdown(plain_grid("", ["masked by", *MEASURES.values()], lines)))
    return "\n\n".join([*parts, ran(results)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
