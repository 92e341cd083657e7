"""``DividedModel``: a language model, opened by name, that scores long texts and many sentences in parts.

A part is a fixed number of lines, or of groups of sentences, counted from the first. So the batches, and the last digit
of a score, do not depend on the worker.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from tasks.corpora.text_lines import read_lines
from tasks.language_model.evaluation.protocol import MarkerRule, Protocol
from tasks.language_model.language_models import Drawing, LanguageModel, NextWords, Precision, TargetScores, Words
from tasks.language_model.normalisation import normalise
from tasks.language_model.opening import open_language_model
from tasks.parts import PART_LINES, Work, blocks, computed
from tasks.settings.resources import ResourceSettings


class DividedModel(LanguageModel):
    """A language model whose texts and groups are scored in parts.

    The first call loads the model and may raise the errors of ``open_language_model``. On a cluster each worker
    receives the name and loads the model itself.
    """

    def __init__(self, name: str, resources: ResourceSettings, precision: Precision = "auto") -> None:
        self._name, self._resources, self._precision = self._given = name, resources, precision

    def __reduce__(self) -> tuple[type["DividedModel"], tuple[str, ResourceSettings, Precision]]:
        return DividedModel, self._given

    @cached_property
    def model(self) -> LanguageModel:
        """The model in this process."""
        from tasks.torch_setup import set_up_torch

        set_up_torch(self._resources.threads)
        return open_language_model(self._name, self._precision)

    @property
    def vocabulary_hash(self) -> str:  # type: ignore[override] # read-only here
        """See ``LanguageModel``."""
        return self.model.vocabulary_hash

    def score_text(
        self, text: str | Path | Sequence[str], markers: MarkerRule = "in_vocabulary"
    ) -> tuple[TargetScores, Protocol]:
        """See ``LanguageModel``."""
        lines = read_lines(text) if isinstance(text, str | Path) else text
        make = partial(self._texts, markers)
        found = computed(blocks(lines, PART_LINES), make, self._resources, uses_model=True)
        parts = [part for part in found if part]
        if not parts:
            return self.model.score_text(text, markers)  # raises the error
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
        """See ``LanguageModel``."""
        found = computed(_by_sentences(groups), self._sentences, self._resources, uses_model=True)
        return [scores for part in found for scores in part]

    def unknown_words(self, words: Words) -> int:
        """See ``LanguageModel``."""
        return self.model.unknown_words(words)

    def next_words(self) -> "NextWords":
        """See ``LanguageModel``."""
        return self.model.next_words()

    def sample(self, drawing: Drawing) -> list[Words]:
        """See ``LanguageModel``."""
        return self.model.sample(drawing)

    def _texts(self, markers: MarkerRule) -> Work:
        # A part without a word has no scores.
        score = self.model.score_text
        return lambda lines, advance: score(lines, markers) if any(map(normalise, lines)) else None

    def _sentences(self) -> Work:
        score = self.model.score_sentences
        return lambda groups, advance: score(groups)


def _by_sentences(groups: Iterable[Sequence[Words]]) -> Iterator[list[Sequence[Words]]]:
    """Blocks of groups; each block has about as many sentences as a part has lines."""
    part: list[Sequence[Words]] = []
    for group in groups:
        part.append(group)
        if sum(map(len, part)) >= PART_LINES:
            yield part
            part = []
    if part:
        yield part
