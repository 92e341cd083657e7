"""Interface of named-entity models for masking, independent of the library.

A line longer than a model takes is read in overlapping windows, so nothing is cut off.

A tagger of words gives each word a probability of belonging to any entity. A word is tagged if the probability is at
least ``minimum_probability``. The most probable answer alone would miss too much: missing a private word is worse than
masking one too many. The F2 measure says so, and is highest far below one half: for true probabilities a word is worth
masking from F2 / 5 on (Lipton, Elkan, Narayanaswamy 2014 show it for F1: F1 / 2). The word's type is the most probable
one. Neighbours of one type are one entity; its score is the mean of its words' probabilities.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.corpora.identifiers import identifiers_in
from tasks.masking.settings import CrfTagger, WordClassifierTagger
from tasks.masking.taggers.crf_features import tokens_of
from tasks.masking.taggers.tagger_folder import read_tagger_folder

if TYPE_CHECKING:
    import numpy as np
    from transformers import PreTrainedConfig
    from transformers import PreTrainedTokenizerBase as Tokenizer


@dataclass(frozen=True, slots=True)
class EntitySpan:
    """A span that a model tags; ``label`` is the model's own entity type."""

    start: int
    """First character, counted from 0."""
    end: int
    """One past the last character."""
    label: str
    score: float | None = None
    """Confidence of the model, from 0 to 1; ``None`` if the model gives none."""
    source: str = ""
    """Part of the model, such as a recogniser by pattern; empty if the model has no parts."""


class Tagger(ABC):
    """A loaded model."""

    name: str
    """Kind and model, for the sidecar and for errors."""
    languages: tuple[str, ...] = ()
    """Languages (ISO 639-1) that the model declares as its training languages; empty if it declares none."""

    @property
    @abstractmethod
    def entity_types(self) -> list[str]:
        """Every entity type that the model can tag, sorted."""

    @abstractmethod
    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Each line, of any length, with its entities in any order; reads lines as a stream."""


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of a line; results count only if they begin between ``core_start`` and ``core_end``."""

    start: int
    end: int
    core_start: int
    core_end: int


def windows(text: str, longest: int, overlap: int) -> Iterator[Window]:
    """Windows of at most ``longest`` characters, about ``overlap`` of them shared; the cores cover the text once.

    Borders are put after white space if there is some within ``overlap``, so that words stay whole. Requires
    ``2 * overlap < longest``. The empty text has one empty window.
    """
    start = core_start = 0
    while True:
        if len(text) - start <= longest:
            yield Window(start, len(text), core_start, len(text))
            return
        end = _behind_space(text, start + longest, overlap)
        core_end = _behind_space(text, end - overlap // 2, overlap // 4)
        yield Window(start, end, core_start, core_end)
        start = _behind_space(text, end - overlap, overlap // 4)
        core_start = core_end


def _behind_space(text: str, position: int, reach: int) -> int:
    """The position after the last white space at most ``reach`` before a position, or the position itself."""
    for place in range(position, max(position - reach, 0), -1):
        if text[place - 1].isspace():
            return place
    return position


_CHARACTERS_AT_ONCE = 320_000
_MOST_POSITIONS = 512
_IDENTIFIER = "IDENTIFIER"
"""The entity type of identifiers in palimpsest's own models."""

TaggedWord = tuple[int, int, str, float]
"""Start, end, entity type and probability of a word."""


class WordTagger(Tagger):
    """A tagger that judges every word, in texts of at most ``longest`` characters, ``block`` lines at a time."""

    kind: str
    """Kind of the tagger, in its name and its folder."""
    longest = 4000
    block = 64

    def __init__(self, settings: CrfTagger | WordClassifierTagger, version: int, files: Sequence[str]) -> None:
        """Read the folder; ``ModelError`` if it is missing or damaged, or has another version of the features."""
        self.folder, self.description = read_tagger_folder(settings.model, self.kind, version, files)
        shipped = settings.model == type(settings).model_fields["model"].default
        self.name = f"{self.kind}:shipped" if shipped else f"{self.kind}:{settings.model}"
        self.languages = ("en",) if shipped else ()
        self.types: list[str] = self.description["entity_types"]
        """The types that the model was trained with, in the order of training."""
        self._minimum = settings.minimum_probability

    @property
    def entity_types(self) -> list[str]:
        """The types that the model was trained with."""
        return sorted(self.types)

    @abstractmethod
    def probabilities(self, texts: Sequence[str]) -> "list[np.ndarray]":
        """The probabilities of each text's tokens (T, C): outside, and the entity types in the order of training."""

    def tagged_words(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """The tagged words of each text, in order."""
        found: list[list[TaggedWord]] = []
        for text, probabilities in zip(texts, self.probabilities(texts), strict=True):
            private = 1 - probabilities[:, 0]
            tokens = tokens_of(text)
            words: list[TaggedWord] = []
            for index in (private >= self._minimum).nonzero()[0].tolist():
                start, end, is_word = tokens[index]
                if is_word:
                    words.append(
                        (start, end, self.types[int(probabilities[index, 1:].argmax())], float(private[index]))
                    )
            found.append(words)
        return found

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Each line with its entities; long lines are read in overlapping windows."""
        for block in blocks_of_text(lines, self.block):
            short = max(map(len, block)) <= self.longest
            words = self.tagged_words(block) if short else self._in_windows(block)
            for line, tagged in zip(block, words, strict=True):
                yield line, self._with_identifiers(line, _entities(line, tagged))

    def _with_identifiers(self, line: str, spans: list[EntitySpan]) -> list[EntitySpan]:
        """The entities, and the identifiers found by their form: a model has seen few of each kind."""
        if _IDENTIFIER not in self.entity_types:
            return spans
        for start, end in identifiers_in(line):
            spans = [span for span in spans if not (start <= span.start and span.end <= end)]
            spans.append(EntitySpan(start, end, _IDENTIFIER, 1.0, "form"))
        return spans

    def _in_windows(self, block: Sequence[str]) -> list[list[TaggedWord]]:
        overlap = min(self.longest // 5, 200)
        cut = [(index, part) for index, line in enumerate(block) for part in windows(line, self.longest, overlap)]
        words: list[list[TaggedWord]] = [[] for _ in block]
        found = self.tagged_words([block[index][window.start : window.end] for index, window in cut])
        for (index, window), tagged in zip(cut, found, strict=True):
            words[index] += [
                (window.start + start, window.start + end, entity_type, probability)
                for start, end, entity_type, probability in tagged
                if window.core_start <= window.start + start < window.core_end
            ]
        return words


def _entities(line: str, tagged: list[TaggedWord]) -> list[EntitySpan]:
    """Entities: each joins neighbouring words of one type that only white space separates."""
    spans: list[EntitySpan] = []
    run: list[TaggedWord] = []
    for word in tagged:
        if run and (word[2] != run[0][2] or not line[run[-1][1] : word[0]].isspace()):
            spans.append(_entity(run))
            run = []
        run.append(word)
    if run:
        spans.append(_entity(run))
    return spans


def _entity(run: list[TaggedWord]) -> EntitySpan:
    return EntitySpan(run[0][0], run[-1][1], run[0][2], sum(word[3] for word in run) / len(run))


def blocks_of_text(lines: Iterable[str], most: int) -> Iterator[list[str]]:
    """Lists of at most ``most`` lines, fewer for long lines, so that memory stays flat."""
    block: list[str] = []
    characters = 0
    for line in lines:
        block.append(line)
        characters += len(line)
        if len(block) == most or characters >= _CHARACTERS_AT_ONCE:
            yield block
            block, characters = [], 0
    if block:
        yield block


def positions_of(config: "PreTrainedConfig", tokenizer: "Tokenizer") -> int:
    """The number of tokens that a window may have, with special tokens."""
    positions = min(tokenizer.model_max_length, getattr(config, "max_position_embeddings", None) or _MOST_POSITIONS)
    if getattr(config, "model_type", "") in ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer"):
        # These count positions from after the padding index.
        positions = min(positions, config.max_position_embeddings - (config.pad_token_id or 0) - 1)
    return min(positions, _MOST_POSITIONS)
