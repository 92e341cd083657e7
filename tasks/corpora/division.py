"""Division of a corpus into train, valid and test: unique sentences, divided by document, with documents and labels.

A first pass cleans the source, drops duplicates (the first occurrence stays) and counts the rest of each document. A
seeded shuffle of the documents gives the first ones to test, the next to valid, the others to train. A second pass
writes. So no sentence and no document is in two parts, and sizes in the settings are exact. Memory holds 16 bytes per
sentence rather than the text.

Cleaning makes a text of the source a sentence of the corpus, or leaves it out and counts the reason. White space and
control characters become one space. Zero-width spaces, soft hyphens, byte order marks and direction marks are removed.
Characters are composed (NFC); halves of surrogate pairs become U+FFFD. Case and punctuation stay.
"""

import random
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from tqdm import tqdm

from tasks.corpora.settings import CleaningSettings
from tasks.corpora.sources.document import PARTS, Document, Part, Source
from tasks.corpora.text_lines import line_writer
from tasks.corpora.words import folded_words
from tasks.errors import CorpusError

EMPTY, TOO_SHORT, TOO_LONG = "empty", "too_short", "too_long"
DUPLICATE, BEYOND_LIMIT = "duplicate", "beyond_limit"
REASONS = (EMPTY, TOO_SHORT, TOO_LONG, DUPLICATE, BEYOND_LIMIT)
"""Reasons to leave a text out."""

# C0 and C1 controls are no white space to ``str.split``, except the ones that end lines or tabulate.
_CONTROLS = {code: " " for code in [*range(0x20), *range(0x7F, 0xA0)]}
# Implicit marks (U+200E, U+200F, U+061C) reorder no text, and stay: Arabic and Hebrew are written with them.
_TURNING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_INVISIBLE = dict.fromkeys((0x200B, 0x2060, 0xFEFF, 0x00AD, *_TURNING), None)
_SURROGATES = re.compile("[\ud800-\udfff]")
_ASCII_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


def normalise(text: str) -> str:
    """The text as one line of composed characters with single spaces."""
    if not text.isascii():
        text = _SURROGATES.sub("\ufffd", text.translate(_INVISIBLE))
        text = unicodedata.normalize("NFC", text).translate(_CONTROLS)
    elif _ASCII_CONTROLS.search(text):
        text = text.translate(_CONTROLS)
    return " ".join(text.split())


def why_left_out(sentence: str, words: int, settings: CleaningSettings) -> str | None:
    """The reason to leave out a normalised sentence with ``words`` words, or ``None``."""
    if not sentence:
        return EMPTY
    if words < settings.minimum_words:
        return TOO_SHORT
    if words > settings.maximum_words:
        return TOO_LONG
    return None


def sentence_key(sentence: str, words: Sequence[str]) -> bytes:
    """The key that equal sentences share: a hash of the folded ``words`` in order; without words, of the
    sentence.

    Case and punctuation make no difference, since the language model sees neither. A key has 16 bytes, so that memory
    holds those of a large corpus.
    """
    key = " ".join(words) or sentence
    return blake2b(key.encode(), digest_size=16).digest()


DOCUMENTS = "train.documents"
"""File with the number of the document of each line of ``train.txt``, one a line. Names of documents may be private.
The name does not end in .txt, or a folder used as a source would read it as text."""
LABELS = "train.labels"
"""File with the label of each line of ``train.txt``, one a line, if the source has labels."""
_READING_ORDER: tuple[Part | None, ...] = ("test", "valid", "train", None)
"""Order of the parts for a sentence that several have: test text must not be in the training text."""
_SCALED: dict[Part, tuple[float, int]] = {"test": (0.15, 2000), "valid": (0.1, 1000)}
"""Share of all sentences and largest size of parts without a size in the settings."""


@dataclass
class DivisionTally:
    """Counts of a source's texts; ``sentences`` and ``left_out`` add up to ``texts``."""

    texts: int = 0
    documents: int = 0
    sentences: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    words: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    left_out: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(REASONS, 0)))
    guessed: Counter[str] = field(default_factory=Counter)
    """Texts of which the reader had to guess something, by the guess."""

    @property
    def warnings(self) -> list[str]:
        """Warnings about the corpus for the user."""
        return [f"{count:,} {what}" for what, count in self.guessed.items()]


def divide(
    source: Source, settings: CleaningSettings, output: str | Path, *, private: bool, name: str
) -> DivisionTally:
    """Write ``train.txt``, ``valid.txt`` and ``test.txt`` into a folder. A private folder also gets
    ``train.documents``, and ``train.labels`` if the source is labelled.

    ``name`` is the source's name in error messages. Raises ``CorpusError`` if the source is too small to divide.
    """
    tally = DivisionTally()
    with ExitStack() as stack:
        streams = {
            part: stack.enter_context(line_writer(Path(output) / f"{part}.txt", private=private)) for part in PARTS
        }
        # Only private text is masked and filled.
        documents = stack.enter_context(line_writer(Path(output) / DOCUMENTS, private=True)) if private else None
        labelled = private and getattr(source, "labelled", False)
        labels = stack.enter_context(line_writer(Path(output) / LABELS, private=True)) if labelled else None
        for part, number, label, sentence in divided(source, settings, tally, name):
            streams[part].write(sentence + "\n")
            if part == "train" and documents is not None:
                documents.write(f"{number}\n")
            if part == "train" and labels is not None:
                labels.write(f"{label}\n")
    return tally


def divided(
    source: Source, settings: CleaningSettings, tally: DivisionTally, name: str
) -> Iterator[tuple[Part, int, str | None, str]]:
    """Part, document number, label and text of each sentence of the corpus; the tally is complete after the last.

    Raises ``CorpusError`` as ``divide`` does.
    """
    groups, parts, room = _surveyed(source, settings, name)
    documents = unique_sentences(source, settings, tally, "writing")
    for group, (document, sentences) in zip(groups, documents, strict=True):
        part = parts[group]
        for sentence, words in sentences:
            if part is None or room[part] == 0:
                tally.left_out[BEYOND_LIMIT] += 1
                continue
            yield part, group + 1, document.label, sentence
            room[part] -= 1
            tally.sentences[part] += 1
            tally.words[part] += words


def check_divisible(source: Source, settings: CleaningSettings, name: str) -> None:
    """Raise the ``CorpusError`` that ``divide`` would; the source is read once, and nothing is written."""
    _surveyed(source, settings, name)


def _ordered(source: Source) -> Iterator[Document]:
    """Documents of fixed parts first, in the order of their claim to a sentence."""
    for part in _READING_ORDER:
        if part in source.parts:
            yield from source.documents(part)


class Seen(Protocol):
    """A set of keys of sentences."""

    def __contains__(self, key: object) -> bool: ...

    def add(self, key: bytes) -> None:
        """Add a key."""
        ...


def unique_sentences(
    source: Source, settings: CleaningSettings, tally: DivisionTally, title: str, seen: Seen | None = None
) -> Iterator[tuple[Document, Iterator[tuple[str, int]]]]:
    """Each document with its clean sentences that no earlier document has, and their numbers of words.

    Read all sentences of a document before the next one. ``seen``: the keys of earlier sentences; in memory if
    ``None``.
    """
    seen = set[bytes]() if seen is None else seen

    def sentences_of(document: Document) -> Iterator[tuple[str, int]]:
        for text in document.texts:
            tally.texts += 1
            sentence = normalise(text)
            words = folded_words(sentence)
            reason = why_left_out(sentence, len(words), settings)
            if reason is None:
                key = sentence_key(sentence, words)
                if key not in seen:
                    seen.add(key)
                    yield sentence, len(words)
                    continue
                reason = DUPLICATE
            tally.left_out[reason] += 1

    bar = tqdm(_ordered(source), desc=title, unit=" documents", disable=None, leave=False)
    for document in bar:
        # Texts that a reader left out may be in the last document of a source, which then has no text.
        tally.texts += sum(document.left_out.values())
        tally.left_out.update(document.left_out)
        tally.guessed.update(document.guessed)
        tally.documents += bool(document.texts)
        yield document, sentences_of(document)


def _surveyed(
    source: Source, settings: CleaningSettings, name: str
) -> tuple[Sequence[int], list[Part | None], dict[Part, int]]:
    """The group of each document, the part of each group (``None``: beyond the limits), and the largest number of
    sentences of each part.

    A group is a document, or all documents of one name. The source is read once.
    """
    groups, counts = array("Q"), array("Q")
    parts: list[Part | None] = []
    numbers: dict[object, int] = {}
    for document, sentences in unique_sentences(source, settings, DivisionTally(), "reading"):
        # The part is in the key: a name that occurs in files of two fixed parts stays in both.
        key = (document.part, document.name)
        group = len(parts) if document.name is None else numbers.setdefault(key, len(parts))
        if group == len(parts):
            parts.append(document.part)
            counts.append(0)
        groups.append(group)
        counts[group] += sum(1 for _ in sentences)
    return groups, *_assigned(parts, counts, settings, name)


def _assigned(
    given: Sequence[Part | None], counts: Sequence[int], settings: CleaningSettings, name: str
) -> tuple[list[Part | None], dict[Part, int]]:
    """The part of each group, and the largest number of sentences of each part, from the parts that the source assigns
    and the numbers of sentences."""
    total = sum(counts)
    if not total:
        raise CorpusError(
            f"{name}: no sentence is left after cleaning; it is empty, or every sentence has fewer than "
            f"{settings.minimum_words} or more than {settings.maximum_words} words"
        )
    parts = list(given)
    fixed = {part for part in parts if part is not None}
    named = {"test": settings.test_sentences, "valid": settings.valid_sentences, "train": settings.train_sentences}
    # A part that the source brings, or without a size in the settings, is taken in whole documents.
    room: dict[Part, int] = {part: total if part in fixed - {"train"} else named[part] or total for part in PARTS}
    sizes = {part: named[part] or min(most, max(1, round(share * total))) for part, (share, most) in _SCALED.items()}
    too_small = CorpusError(
        f"{name}: {total} different sentences are too few (or in too few documents) for a test part of "
        f"{sizes['test']}, a validation part of {sizes['valid']} and training text; "
        "lower test_sentences and valid_sentences, or bring more text"
    )
    # Documents that are neither test nor valid can become any part that the source does not bring.
    free = [group for group, part in enumerate(parts) if counts[group] and part in (None, "train")]
    random.Random(settings.seed).shuffle(free)
    left = iter(free)
    for part, needed in sizes.items():
        while part not in fixed and needed > 0:
            group = next(left, None)
            if group is None:
                raise too_small
            parts[group] = part
            needed -= counts[group]
    others = list(left)
    if not others:
        raise too_small
    needed = room["train"]
    for group in others:
        parts[group] = "train" if needed > 0 else None
        needed -= counts[group]
    return parts, room
