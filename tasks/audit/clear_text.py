"""What of a private text stands in clear in a text that was made of it: counted, with no attack but reading.

A word is private where a technique or a tagger says so, and *hidden* where it does not stand in the other text. Of a
text that palimpsest masked the sidecar says which words are hidden (a fill that happens to be the masked word does not
count: nobody knows that it is); of any other one, line by line, an alignment of its words with those of the private
line. The shares of all lines are exact and have no interval; those of a sample have one.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path
from typing import Any

from tasks.audit.figure import Figure, share_figure
from tasks.corpora.masked_text import DIRECT_IDENTIFIERS
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_documents, read_lines
from tasks.corpora.words import fold, word_spans
from tasks.filling.aligned_fills import side_by_side
from tasks.masking.settings import CrfTagger, SpacyTagger, TechniqueSettings
from tasks.masking.taggers.entity_tagger import EntityTagger
from tasks.masking.technique import Finding, Technique

Words = frozenset[tuple[int, int]]
"""Words of one private line by their first character and the one past their last."""


def masked_words(sidecar: str | Path) -> Iterator[Words]:
    """The words of each line that a technique masks."""
    for spans in read_sidecar(sidecar):
        yield frozenset((span.start, span.end) for span in spans)


def missing_words(raw: Iterable[str], text: Iterable[str], *, anywhere: bool = False) -> Iterator[Words]:
    """The words of each private line that do not stand in that of the other text, in the same order, or ``anywhere``;
    in any case."""
    for line, other in side_by_side(raw, text):
        if line == other:
            yield frozenset()
            continue
        spans = word_spans(line)
        ours, theirs = ([fold(one[start:end]) for start, end in word_spans(one)] for one in (line, other))
        if anywhere:
            yield frozenset(span for span, word in zip(spans, ours, strict=True) if word not in theirs)
            continue
        missing = set(spans)
        for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
            missing -= set(spans[block.a : block.a + block.size])
        yield frozenset(missing)


def hidden_words(
    raw: str | Path, text: str | Path, sidecar: str | Path | None, *, anywhere: bool = False
) -> Iterator[Words]:
    """By the sidecar, where there is one, or else by the two texts (``missing_words``); Oracle's, the private text
    itself, hides none."""
    return masked_words(sidecar) if sidecar else missing_words(read_lines(raw), read_lines(text), anywhere=anywhere)


def clear_share(private: Iterable[Iterable[Words]], hidden: Iterable[Words]) -> Figure:
    """Of the words that any technique calls private the share that is not hidden.

    ``private``: line by line, for each technique (``masked_words``).
    """
    clear = words = 0
    for shown, *called in side_by_side(hidden, *private):
        any_calls = frozenset[tuple[int, int]]().union(*called)
        words += len(any_calls)
        clear += len(any_calls - shown)
    attacker = "whoever reads the text; private is what any technique of the experiment masks"
    return Figure(clear / words if words else None, None, attacker, places=words)


def verbatim_lines(raw: str | Path, text: str | Path, copies: int = 1) -> Figure:
    """The share of lines that are the private line; ``copies`` of a fill stand one behind the other."""
    equal = lines = 0
    repeated = chain.from_iterable(read_lines(raw) for _ in range(copies))
    for one, other in side_by_side(repeated, read_lines(text)):
        lines += 1
        equal += one == other
    return Figure(equal / lines if lines else None, None, "whoever reads the text", places=lines)


def tagged_words(
    lines: Iterable[str], hidden: Iterable[Words], technique: Technique
) -> Iterator[tuple[list[Finding], list[Finding]]]:
    """Of each line what the technique calls private, and those of them that are not hidden."""
    for (_, findings), words in side_by_side(technique.findings(lines), hidden):
        yield findings, [finding for finding in findings if (finding.start, finding.end) not in words]


@dataclass(slots=True)
class _Document:
    """What a tagger finds in one document."""

    words: int = 0
    clear: int = 0
    """Of these words, those that are not hidden."""
    entities: dict[tuple[str, tuple[str, ...]], bool] = field(default_factory=dict)
    """By class and folded words: whether a word of any mention is not hidden."""

    def add(self, line: str, tagged: Sequence[Finding], clear: Sequence[Finding]) -> None:
        """Count a line."""
        self.words += len(tagged)
        self.clear += len(clear)
        shown = {finding.start for finding in clear}
        for mention in _mentions(line, tagged):
            entity = mention[0].label, tuple(fold(line[word.start : word.end]) for word in mention)
            in_clear = any(word.start in shown for word in mention)
            self.entities[entity] = self.entities.get(entity, False) or in_clear


def _mentions(line: str, tagged: Sequence[Finding]) -> list[list[Finding]]:
    """Neighbouring words of one class, with nothing but white space between them, are one mention."""
    mentions: list[list[Finding]] = []
    for word in tagged:
        last = mentions[-1][-1] if mentions else None
        if last and last.label == word.label and not line[last.end : word.start].strip():
            mentions[-1].append(word)
        else:
            mentions.append([word])
    return mentions


def residual_entities(
    raw: str | Path,
    hidden: Iterable[Words],
    tagger: Technique,
    documents: str | Path | None = None,
    most_lines: int = 1000,
    seed: int = 1,
) -> dict[str, Figure]:
    """What a tagger that did not mask still finds, by the definitions of the Text Anonymization Benchmark (Pilán et al.
    2022, section 6), with the tagger in the place of its annotators.

    ``residual_entities``: the share of the tagger's words that is in clear. ``document_recall``: the share of documents
    in which none is, of those with one word or more. ``residual_direct`` and ``residual_quasi``: of the direct and the
    quasi-identifiers the share of entities with a word in clear in any mention, which is 1 less the benchmark's recall
    of entities; mentions of a document are of one entity where class and words are equal, since no tagger here tells
    that "Anna" is "Anna Smith". ``residual_person`` and so on: the same by class.

    ``documents``: the name of each line's document; without it each line is one. Documents are drawn by ``seed`` until
    they have so many lines. The intervals are over documents.
    """
    chosen = _lines_of_sample(raw, documents, most_lines, seed)
    lines, shown, names = [], [], []
    for number, (line, words) in enumerate(side_by_side(read_lines(raw), hidden)):
        if number in chosen:
            lines.append(line)
            shown.append(words)
            names.append(chosen[number])
    read: dict[str, _Document] = {}
    for line, name, (tagged, clear) in zip(lines, names, tagged_words(lines, shown, tagger), strict=True):
        read.setdefault(name, _Document()).add(line, tagged, clear)
    found = [document for document in read.values() if document.words]
    attacker = f"the tagger {tagger.name} reads the private text, at least {most_lines:,} lines drawn or all"

    def entities(classes: Iterable[str]) -> Figure:
        of_class = [[clear for (label, _), clear in each.entities.items() if label in classes] for each in found]
        return share_figure(list(map(sum, of_class)), list(map(len, of_class)), attacker)

    classes = sorted({label for document in found for label, _ in document.entities})
    return {
        "residual_entities": share_figure([each.clear for each in found], [each.words for each in found], attacker),
        "document_recall": share_figure([each.clear == 0 for each in found], [1] * len(found), attacker),
        "residual_direct": entities(DIRECT_IDENTIFIERS),
        "residual_quasi": entities(set(classes) - DIRECT_IDENTIFIERS),
        **{f"residual_{label.lower()}": entities([label]) for label in classes},
    }


def _lines_of_sample(raw: str | Path, documents: str | Path | None, most_lines: int, seed: int) -> Mapping[int, str]:
    """Numbers of the lines drawn, from 0, and their documents."""
    together = side_by_side(read_lines(raw), *([read_documents(documents)] if documents else []))
    lines_of: dict[str, list[int]] = {}
    for number, (_, *named) in enumerate(together):
        lines_of.setdefault(named[0] if named else str(number), []).append(number)
    drawn: dict[int, str] = {}
    for name in random.Random(seed).sample(list(lines_of), len(lines_of)):
        if len(drawn) >= most_lines:
            break
        drawn |= dict.fromkeys(lines_of[name], name)
    return drawn


def configured_taggers(techniques: Iterable[TechniqueSettings]) -> list[EntityTagger]:
    """Every different tagger of some techniques, those inside combinations too."""
    parts: list[Any] = [part for technique in techniques for part in getattr(technique, "parts", [technique])]
    taggers = [part for part in parts if isinstance(part, EntityTagger)]
    return list({part.model_dump_json(exclude={"markers"}): part for part in taggers}.values())


def other_tagger(techniques: Mapping[str, TechniqueSettings], own: str | None) -> EntityTagger:
    """A tagger that did not mask: of the other techniques, which have masked and so have their models, a word
    classifier first, since it misses least; or else one that needs no training: the shipped conditional random field,
    or spaCy where that is what masked."""
    masked_by = [part.tagger for part in configured_taggers([techniques[own]])] if own else []
    others = configured_taggers(technique for name, technique in techniques.items() if name != own)
    others.sort(key=lambda part: part.tagger.kind != "word_classifier")
    shipped = [
        EntityTagger(kind="entity_tagger", tagger=tagger)
        for tagger in (CrfTagger(kind="crf"), SpacyTagger(kind="spacy"))
    ]
    return next(part for part in chain(others, shipped) if part.tagger not in masked_by)


def clear_text(
    raw: str | Path,
    text: str | Path,
    sidecars: Mapping[str, Path],
    own: str | None,
    tagger: Technique,
    *,
    copies: int = 1,
    documents: str | Path | None = None,
    most_lines: int = 1000,
    seed: int = 1,
    anywhere: bool = False,
) -> dict[str, Figure]:
    """All figures of a cell. ``sidecars`` by technique; ``own``: the cell's, ``None`` where nothing or something else
    masked, as for Oracle, or a text of another program. ``anywhere``: whether words of a line may have moved."""

    def hidden() -> Iterator[Words]:
        return hidden_words(raw, text, sidecars[own] if own else None, anywhere=anywhere)

    return {
        "clear_share": clear_share(map(masked_words, sidecars.values()), hidden()),
        "verbatim_lines": verbatim_lines(raw, text, copies),
        **residual_entities(raw, hidden(), tagger, documents, most_lines, seed),
    }
