"""The language models of a fusion, of whatever kind, as parts of the beam search."""

from dataclasses import replace

import numpy as np

from tasks.corpora.text_lines import read_lines
from tasks.language_model.causal_lm.next_words import WholeWords
from tasks.language_model.language_models import open_language_model
from tasks.speech.fusion.completed_words import CompletedWords
from tasks.speech.fusion.prefix_score import (
    PrefixScore,
    SpelledUnits,
    ZeroEncoder,
    sentence_log_probabilities,
    unit_bigram,
)
from tasks.speech.fusion.shallow_fusion import FusionWeights, ShallowFusion
from tasks.speech.fusion.subword_fusion import SubwordScore, is_of_units
from tasks.speech.fusion.word_lookahead import WordLookahead
from tasks.speech.recogniser.recogniser import Recogniser
from tasks.speech.rescoring.settings import FusionSettings
from tasks.speech.search.predictor_states import Hypothesis


class FusedModel:
    """A language model, and the internal one that is subtracted, as parts of a recogniser's beam search."""

    def __init__(self, model: str, source: str | None, settings: FusionSettings, recogniser: Recogniser) -> None:
        self._recogniser, self._settings = recogniser, settings
        self._units = SpelledUnits(recogniser.units)
        self._language_model, self.vocabulary_hash = self._score(model)
        self._internal: PrefixScore | None = None
        match settings.internal_lm:
            case "density_ratio":
                self._internal, _ = self._score(str(source))
            case "lodr":
                lines = list(read_lines(str(source)))
                self._internal = unit_bigram(recogniser.units.encode_all(lines), recogniser.units.blank)
            case "zero_encoder":
                self._internal = ZeroEncoder()

    def _score(self, folder: str) -> tuple[PrefixScore, str]:
        """A language model of whatever kind as part of the search, and the hash of its vocabulary."""
        language_model = open_language_model(folder)
        words, vocabulary = language_model.next_words(), language_model.vocabulary_hash
        if isinstance(words, WholeWords):
            return CompletedWords(words, self._units), vocabulary
        if is_of_units(words.vocabulary):
            return SubwordScore(words, self._recogniser.units.pieces), vocabulary
        return WordLookahead(words, self._units, self._settings.unknown_log_share), vocabulary

    def fusion(self, weights: FusionWeights) -> ShallowFusion:
        """What the beam search adds to the transducer's scores."""
        return ShallowFusion(weights, self._units, self._language_model, self._internal)

    def completed(self, lists: list[list[Hypothesis]], weights: FusionWeights) -> list[list[Hypothesis]]:
        """The hypotheses with the parts of their scores that the search left out because the weight was 0."""
        flat = [found for hypotheses in lists for found in hypotheses]
        model, blank = self._recogniser.model, self._recogniser.units.blank
        sequences = [found.units for found in flat]
        changes: dict[str, np.ndarray] = {}
        if not weights.lm_weight:
            changes["language_model"] = sentence_log_probabilities(self._language_model, sequences, model, blank)
        if self._internal is not None and not weights.internal_lm_weight:
            changes["internal"] = sentence_log_probabilities(self._internal, sequences, model, blank)
        if not changes:
            return lists
        whole = iter(
            replace(found, **{name: float(values[index]) for name, values in changes.items()})  # type: ignore[arg-type]
            for index, found in enumerate(flat)
        )
        return [[next(whole) for _ in hypotheses] for hypotheses in lists]
