"""A language model by its name that scores long texts and many sentences in shards, on all devices there are.

A shard is so many lines, or groups of sentences, counted from the first: what stands in a batch, and so the last digit
of a score, is the same whoever computes it. A model of running text reads its text as a whole, in this process.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.corpora.text_lines import read_lines
from tasks.language_model.evaluation.protocol import MarkerRule, Protocol
from tasks.language_model.language_models import (
    Drawing,
    LanguageModel,
    NextWords,
    Precision,
    TargetScores,
    Words,
    open_language_model,
)
from tasks.language_model.model_folder import kind_of_model, read_settings
from tasks.language_model.normalisation import normalise
from tasks.records.stage_report import content_hash
from tasks.settings.resources import ResourceSettings
from tasks.shards.sharded_work import SHARD_LINES, ShardedWork, blocks
from tasks.shards.work_key import model_state, work_key
from tasks.shards.workers import Advance, Make, Work

if TYPE_CHECKING:
    from tasks.language_model.causal_lm.next_words import WholeWords

_Scored = tuple[TargetScores, Protocol] | None
"""Of a shard; ``None`` where no line of it has a word."""


@contextmanager
def sharded_model(
    model: str, resources: ResourceSettings, owner: object, precision: Precision = "auto"
) -> Iterator["ShardedModel"]:
    """The model; its finished shards are kept until the block ends well.

    ``owner``: the files and the cell of the stage, which say whose they are; ``None``: they are not kept. Raises what
    ``open_language_model`` does, when the model is first asked.
    """
    made = ShardedModel(model, resources, None if owner is None else repr(owner), precision)
    try:
        yield made
        for work in made.open:
            work.remove()
    finally:
        for work in made.open:
            work.close()


class ShardedModel:
    """See ``LanguageModel``; the model is loaded when it is first asked. ``owner`` as ``sharded_model``."""

    def __init__(
        self, name: str, resources: ResourceSettings, owner: str | None = None, precision: Precision = "auto"
    ) -> None:
        self._given = name, resources, owner, precision
        self._name, self._resources, self._owner, self._precision = self._given
        self.open: list[ShardedWork[Any]] = []

    def __reduce__(self) -> tuple[type["ShardedModel"], tuple[str, ResourceSettings, str | None, Precision]]:
        """What a worker gets: it loads the model itself."""
        return ShardedModel, self._given

    @cached_property
    def model(self) -> LanguageModel:
        """The model in this process."""
        from tasks.torch_setup import set_up_torch

        set_up_torch(self._resources.threads)
        return open_language_model(self._name, self._precision)

    @property
    def vocabulary_hash(self) -> str:
        """As the protocol says."""
        return self.model.vocabulary_hash

    def score_text(
        self, text: str | Path | Sequence[str], markers: MarkerRule = "in_vocabulary"
    ) -> tuple[TargetScores, Protocol]:
        """As the protocol says."""
        if self._reads_on:
            return self.model.score_text(text, markers)
        shards = blocks(read_lines(text) if isinstance(text, str | Path) else text, SHARD_LINES)
        found = self._computed(
            shards,
            partial(self._texts, markers),
            lambda: [content_hash(str(text)) if isinstance(text, str | Path) else _hash(text), markers],
        )
        parts = [part for part in found if part]
        if not parts:
            return self.model.score_text(text, markers)  # says why
        scores, protocols = zip(*parts, strict=True)
        of_markers = [each.marker_log_probability for each in scores if each.marker_log_probability is not None]
        known = np.concatenate([each.known for each in scores])
        words = sum(protocol.words for protocol in protocols)
        rate = None if protocols[0].unknown_rate is None else int((~known).sum()) / words
        return TargetScores(
            log_probability=np.concatenate([each.log_probability for each in scores]),
            known=known,
            marker_log_probability=np.concatenate(of_markers) if of_markers else None,
        ), replace(protocols[0], unknown_rate=rate, words=words)

    def score_sentences(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        """As the protocol says."""
        found = self._computed(_by_sentences(groups), self._sentences, lambda: [_hash(groups)])
        return [scores for part in found for scores in part]

    def unknown_words(self, words: Words) -> int:
        """As the protocol says."""
        return self.model.unknown_words(words)

    def next_words(self) -> "NextWords | WholeWords":
        """As the protocol says."""
        return self.model.next_words()

    def sample(self, drawing: Drawing) -> list[Words]:
        """As the protocol says."""
        return self.model.sample(drawing)

    @property
    def _reads_on(self) -> bool:
        """Whether it reads a sentence behind those before it."""
        if kind_of_model(self._name) != "transformer":
            return False
        from tasks.language_model.transformer.model import FORMAT, KIND

        return (
            read_settings(Path(self._name), KIND, FORMAT, ["architecture"])["architecture"].get("context") == "stream"
        )

    def _computed(self, shards: Iterator[Any], make: Make, content: Callable[[], list[str]]) -> list[Any]:
        """What comes of all shards; ``content`` says what they are."""

        def key() -> str:
            decides = {"content": content(), "precision": self._precision, "model": model_state(self._name)}
            return work_key(decides, self._resources.threads, uses_model=True)

        output = None if self._owner is None else f"{self._owner} {self._name} {len(self.open)}"
        work: ShardedWork[Any] = ShardedWork(shards, make, self._resources, uses_model=True, output=output, key=key)
        self.open.append(work)
        with closing(work.finished()) as finished:
            return [each.result for each in finished]

    def _texts(self, markers: MarkerRule) -> Work:
        model = self.model

        def scored(lines: list[str], advance: Advance) -> _Scored:
            return model.score_text(lines, markers) if any(map(normalise, lines)) else None

        return scored

    def _sentences(self) -> Work:
        model = self.model

        def scored(groups: Sequence[Sequence[Words]], advance: Advance) -> list[np.ndarray]:
            return model.score_sentences(groups)

        return scored


def _by_sentences(groups: Sequence[Sequence[Words]]) -> Iterator[list[Sequence[Words]]]:
    """Groups together until they have as many sentences as a shard has lines."""
    part: list[Sequence[Words]] = []
    for group in groups:
        part.append(group)
        if sum(map(len, part)) >= SHARD_LINES:
            yield part
            part = []
    if part:
        yield part


def _hash(sentences: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for each in sentences:
        digest.update(f"{each!r}\n".encode())
    return digest.hexdigest()
