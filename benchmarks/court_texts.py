"""Court decisions of the Text Anonymization Benchmark (TAB, Pilán et al. 2022), and anonymised versions of them.

``DATA/persons`` holds decisions with the spans of one annotator each (``entity_tab.jsonl``), documents with facts about
their persons (``spia_tab.jsonl``, ``spia_panorama.jsonl``), and in ``peers`` the anonymisations that others published
of the test part. Techniques read a decision sentence by sentence.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

import palimpsest
from benchmarks.stored_numbers import ROOT
from tasks.anonymisers.versions import replaced
from tasks.masking.techniques import AnyTechnique, settings_named
from tasks.persons.facts import Document, read_documents
from tasks.settings.checks import check_settings

SETTINGS: Mapping[str, dict[str, Any]] = {
    "documents": yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["masking"]["documents"],
    "spacy, small": settings_named("spacy"),
}
"""Techniques that are not known by their name alone."""
BY_HAND = "the annotators of TAB (published)"
PEERS = {
    BY_HAND: "TAB_test_Manual_Entity",
    "Presidio (published)": "TAB_test_Presidio_Entity",
    "spaCy (published)": "TAB_test_spaCy_Entity",
    "Stanford NER, 4 classes (published)": "TAB_test_St.NER4_Entity",
    "Stanford NER, 7 classes (published)": "TAB_test_St.NER7_Entity",
}
"""Files of published anonymisations, whose replacements are classes."""
GPT = "the annotators of TAB, substitutes of GPT-3.5 (published)"
REPLACED = {
    GPT: "TAB_test_Manual_Presidio_gpt-3.5-turbo-0125",
    "the annotators of TAB, spans left out (published)": "TAB_test_Manual_Supression",
    "the annotators of TAB, general terms (published)": "TAB_test_Manual_Dou",
}
"""Files with other replacements of the annotators' spans."""
FILLED = "every_tagger, surrogates"
SEED = 1
_BETWEEN = " \u00a0-\u2010\u2011"
"""Spaces and hyphens between two masked words; they reveal nothing."""
_GAP = re.compile(r"\n+|(?<=[.;:?!”])\s+(?=[A-Z“(])")
_NO_END = re.compile(r"(?:^|[\s(“])(?:[A-Z]|Mr|Mrs|Ms|Dr|Art|nos?|v)\.$")
Span = tuple[int, int]
Texts = Mapping[int, str]
"""Texts by number of the document."""


def annotated(data: Path) -> dict[str, dict[str, Any]]:
    """The decisions with their spans, by name."""
    lines = (data / "persons/entity_tab.jsonl").read_text(encoding="utf-8").splitlines()
    return {one["metadata"]["provenance"]["doc_id"]: one for one in map(json.loads, lines)}


def is_test(decision: Mapping[str, Any]) -> bool:
    """Whether it belongs to TAB's test part, of which there are published anonymisations."""
    return bool(decision["metadata"]["provenance"]["dataset_type"] == "test")


def tested(data: Path) -> tuple[list[Document], dict[int, str]]:
    """All decisions with facts, and the names of those of TAB's test part by number."""
    documents = read_documents(data / "persons/spia_tab.jsonl")
    names = {one["text"]: name for name, one in annotated(data).items() if is_test(one)}
    return documents, {number: names[one.text] for number, one in enumerate(documents) if one.text in names}


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a decision in one line each, with the place of their first character."""
    begin = 0
    found = [gap.span() for gap in _GAP.finditer(text)]
    gaps = [gap for gap in found if not _NO_END.search(text[max(gap[0] - 6, 0) : gap[0]])]
    for end, after in [*gaps, (len(text), len(text))]:
        if end > begin:
            yield begin, text[begin:end].replace("\n", " ")
        begin = after


def masked_by(name: str, texts: Mapping[Any, str]) -> dict[Any, list[Span]]:
    """Masked spans of each text by a technique of this name."""
    settings = SETTINGS.get(name) or settings_named(name)
    technique = check_settings(AnyTechnique, settings, "technique").build(None, threads=1)
    pieces = [(of, *piece) for of, text in texts.items() for piece in sentences(text)]
    spans: dict[Any, list[Span]] = {of: [] for of in texts}
    findings = technique.findings(sentence for _, _, sentence in pieces)
    for (of, begin, sentence), (_, found) in zip(pieces, findings, strict=True):
        words = joined([(one.start, one.end) for one in found], sentence)
        spans[of] += [(begin + start, begin + end) for start, end in words]
    return spans


def joined(words: Iterable[Span], text: str) -> list[Span]:
    """Spans with nothing but spaces and hyphens between them as one."""
    spans: list[Span] = []
    for start, end in words:
        if spans and not text[spans[-1][1] : start].strip(_BETWEEN):
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


def masked(name: str, texts: Texts) -> Texts:
    """The version masked by a technique."""
    spans = masked_by(name, texts)
    return {number: replaced(text, [(*span, "[MASK]") for span in spans[number]]) for number, text in texts.items()}


def surrogates(texts: Texts) -> Texts:
    """The version masked by ``every_tagger`` and filled by ``surrogate``, a sentence in each line."""
    numbers, lines = zip(*((n, line) for n, text in texts.items() for _, line in sentences(text)), strict=True)
    filled = palimpsest.fill(palimpsest.mask(list(lines), "every_tagger"), "surrogate", seed=SEED)
    found: dict[int, list[str]] = {number: [] for number in texts}
    for number, line in zip(numbers, filled, strict=True):
        found[number].append(str(line))
    return {number: "\n".join(own) for number, own in found.items()}


def published_spans(data: Path, peer: str) -> dict[str, list[tuple[int, int, str]]]:
    """Spans of a published anonymisation by name of the decision: start, end and replacement."""
    path = data / "persons/peers" / f"{(PEERS | REPLACED)[peer]}.json"
    found: dict[str, list[tuple[int, int, str]]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def published(data: Path, peer: str, texts: Texts, names: Texts) -> Texts:
    """A published version; ``names``: those of the decisions by number."""
    spans = published_spans(data, peer)
    return {number: replaced(text, spans[names[number]]) for number, text in texts.items()}
