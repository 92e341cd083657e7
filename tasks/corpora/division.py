"""Train, valid and test: unique sentences, divided by document; which lines of train are of one document, and labels.

A first pass cleans the source, leaves duplicates out (the first occurrence stays) and counts what remains of each
document; a seeded shuffle of the documents then gives the first ones to test, the next to valid, the others to
train; a second pass writes. So no sentence and no document is in two parts, sizes that the settings name are exact, and
memory holds 16 bytes per sentence rather than the text.

How a text of a source becomes a sentence of a corpus, or is left out for a reason that is counted.

White space of any kind and control characters become one space; zero-width spaces, soft hyphens, byte order marks
and marks that turn the direction of text go; characters are composed (NFC); halves of surrogate pairs become U+FFFD.
Case and punctuation stay.
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

from tqdm import tqdm

from tasks.corpora.settings import CleaningSettings
from tasks.corpora.sources.document import PARTS, Document, Part, Source
from tasks.corpora.text_lines import line_writer
from tasks.corpora.words import folded_words
from tasks.errors import CorpusError

EMPTY, TOO_SHORT, TOO_LONG = "empty", "too_short", "too_long"
DUPLICATE, BEYOND_LIMIT = "duplicate", "beyond_limit"
REASONS = (EMPTY, TOO_SHORT, TOO_LONG, DUPLICATE, BEYOND_LIMIT)
"""Why a text is left out."""

# C0 and C1 controls are no white space to ``str.split``, except the ones that end lines or tabulate.
_CONTROLS = {code: " " for code in [*range(0x20), *range(0x7F, 0xA0)]}
# Letters of a direction (U+200E, U+200F, U+061C) turn no text, and stay: Arabic and Hebrew are written with them.
_TURNING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_INVISIBLE = dict.fromkeys((0x200B, 0x2060, 0xFEFF, 0x00AD, *_TURNING), None)
_SURROGATES = re.compile("[\ud800-\udfff]")
_ASCII_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


def normalise(text: str) -> str:
    """One line of composed characters with single spaces."""
    if not text.isascii():
        text = _SURROGATES.sub("\ufffd", text.translate(_INVISIBLE))
        text = unicodedata.normalize("NFC", text).translate(_CONTROLS)
    elif _ASCII_CONTROLS.search(text):
        text = text.translate(_CONTROLS)
    return " ".join(text.split())


def why_left_out(sentence: str, words: int, settings: CleaningSettings) -> str | None:
    """The reason to leave a normalised sentence of so many words out, or ``None``."""
    if not sentence:
        return EMPTY
    if words < settings.minimum_words:
        return TOO_SHORT
    if words > settings.maximum_words:
        return TOO_LONG
    return None


def sentence_key(sentence: str, words: Sequence[str]) -> bytes:
    """What makes two sentences the same: their folded ``words`` in order; without any word, the sentence itself.

    Case and punctuation make no difference, since the language model sees neither. 16 bytes, so that the sentences
    of a large corpus can be told apart in memory.
    """
    key = " ".join(words) or sentence
    return blake2b(key.encode(), digest_size=16).digest()


DOCUMENTS = "train.documents"
"""The number of the document of each line of ``train.txt``, one a line. Names of documents may be private, and a file
that ends in .txt would be taken for text where the folder is a source itself."""
LABELS = "train.labels"
"""The label of each line of ``train.txt``, one a line, where the source has labels."""
_READING_ORDER: tuple[Part | None, ...] = ("test", "valid", "train", None)
"""Which part keeps a sentence that several have: what is tested on must not be trained on."""
_SCALED: dict[Part, tuple[float, int]] = {"test": (0.15, 2000), "valid": (0.1, 1000)}
"""Share of all sentences and largest size of the parts whose size nobody named."""


@dataclass
class DivisionTally:
    """What became of every text of a source; the numbers of ``sentences`` and ``left_out`` add up to ``texts``."""

    texts: int = 0
    documents: int = 0
    sentences: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    words: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    part_documents: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    left_out: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(REASONS, 0)))
    guessed: Counter[str] = field(default_factory=Counter)
    """Texts of which the reader had to guess something, by what it guessed."""

    @property
    def warnings(self) -> list[str]:
        """What a reader of the corpus must know."""
        return [f"{count:,} {what}" for what, count in self.guessed.items()]


def divide(
    source: Source, settings: CleaningSettings, output: str | Path, *, private: bool, name: str
) -> DivisionTally:
    """Write ``train.txt``, ``valid.txt`` and ``test.txt`` into a folder; in a private one ``train.documents``, and
    ``train.labels`` of a labelled source.

    ``name`` is what error messages call the source. Raises ``CorpusError`` where it is too small to be divided.
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
    """Part, number and label of the document, and text of each sentence that comes in; the tally is complete behind the
    last one.

    Raises ``CorpusError`` as ``divide`` does.
    """
    survey = _survey(source, settings)
    parts, room = _assign(survey, settings, name)
    for index, (document, sentences) in enumerate(_unique(source, settings, tally, "writing")):
        part = parts[survey.groups[index]]
        written = 0
        for sentence, words in sentences:
            if part is None or room[part] == 0:
                tally.left_out[BEYOND_LIMIT] += 1
                continue
            yield part, survey.groups[index] + 1, document.label, sentence
            room[part] -= 1
            written += 1
            tally.words[part] += words
        if part is not None and written:
            tally.sentences[part] += written
            tally.part_documents[part] += 1


def check_divisible(source: Source, settings: CleaningSettings, name: str) -> None:
    """Raise the ``CorpusError`` that ``divide`` would; the source is read once, and nothing is written."""
    _assign(_survey(source, settings), settings, name)


@dataclass
class _Survey:
    """What the first pass finds: for each document the number of its group, and for each group part and sentences.

    A group is a document, or all documents of one name.
    """

    groups: array = field(default_factory=lambda: array("Q"))
    parts: list[Part | None] = field(default_factory=list)
    counts: array = field(default_factory=lambda: array("Q"))


def _ordered(source: Source) -> Iterator[Document]:
    """Documents of fixed parts first, in the order in which they have a right to a sentence."""
    for part in _READING_ORDER:
        if part in source.parts:
            yield from source.documents(part)


def _unique(
    source: Source, settings: CleaningSettings, tally: DivisionTally, title: str
) -> Iterator[tuple[Document, Iterator[tuple[str, int]]]]:
    """Each document with its clean sentences that no document before it had, and the number of their words; the
    sentences must be used up."""
    seen: set[bytes] = set()

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
        # What a reader leaves out stands in the last document of a source too, which has no text then.
        tally.texts += sum(document.left_out.values())
        tally.left_out.update(document.left_out)
        tally.guessed.update(document.guessed)
        tally.documents += bool(document.texts)
        yield document, sentences_of(document)


def _survey(source: Source, settings: CleaningSettings) -> _Survey:
    survey = _Survey()
    numbers: dict[object, int] = {}
    for document, sentences in _unique(source, settings, DivisionTally(), "reading"):
        # The part is in the key: a name that stands in two files of fixed parts stays where those files put it.
        key = (document.part, document.name)
        group = numbers.get(key) if document.name is not None else None
        if group is None:
            group = len(survey.parts)
            if document.name is not None:
                numbers[key] = group
            survey.parts.append(document.part)
            survey.counts.append(0)
        survey.groups.append(group)
        survey.counts[group] += sum(1 for _ in sentences)
    return survey


def _assign(survey: _Survey, settings: CleaningSettings, name: str) -> tuple[list[Part | None], dict[Part, int]]:
    """The part of each group (``None``: beyond the limits), and how many sentences each part may take."""
    total = sum(survey.counts)
    if not total:
        raise CorpusError(
            f"{name}: no sentence is left after cleaning; it is empty, or every sentence has fewer than "
            f"{settings.minimum_words} or more than {settings.maximum_words} words"
        )
    parts = list(survey.parts)
    fixed = {part for part in parts if part is not None}
    sizes: dict[Part, int] = {
        "test": settings.test_sentences or _scaled("test", total),
        "valid": settings.valid_sentences or _scaled("valid", total),
    }
    # A part that the source brings, or whose size nobody named, is taken in whole documents.
    named = {"test": settings.test_sentences, "valid": settings.valid_sentences, "train": settings.train_sentences}
    room: dict[Part, int] = {part: total if part in fixed - {"train"} else named[part] or total for part in PARTS}
    # What is neither test nor valid by itself can become any part that the source does not bring.
    free = [group for group, part in enumerate(parts) if survey.counts[group] and part in (None, "train")]
    random.Random(settings.seed).shuffle(free)
    position = 0
    for part in ("test", "valid"):
        if part in fixed:
            continue
        needed = sizes[part]
        while needed > 0 and position < len(free):
            parts[free[position]] = part
            needed -= survey.counts[free[position]]
            position += 1
        if needed > 0:
            _too_small(name, total, sizes)
    needed = room["train"]
    if position == len(free):
        _too_small(name, total, sizes)
    for group in free[position:]:
        parts[group] = "train" if needed > 0 else None
        needed -= survey.counts[group]
    return parts, room


def _scaled(part: Part, total: int) -> int:
    """Sentences of a part whose size nobody named."""
    share, most = _SCALED[part]
    return min(most, max(1, round(share * total)))


def _too_small(name: str, sentences: int, sizes: dict[Part, int]) -> None:
    raise CorpusError(
        f"{name}: {sentences} different sentences are too few (or in too few documents) for a test part of "
        f"{sizes['test']}, a validation part of {sizes['valid']} and training text; "
        "lower test_sentences and valid_sentences, or bring more text"
    )
