"""The scorers of a fusion: word counts, a language model of any kind, an internal language model to subtract.

score = transducer + insertion_bonus x words + lm_weight x language model - internal_lm_weight x internal model.
The score of blank is unchanged.
"""

from collections.abc import Mapping

from tasks.language_model.causal_lm.next_words import WholeWords
from tasks.language_model.opening import open_language_model
from tasks.speech.fusion.completed_words import CompletedWords
from tasks.speech.fusion.unit_scorers import SpelledUnits, UnitModel, WordCounts, ZeroEncoder, is_of_units
from tasks.speech.fusion.word_lookahead import WordLookahead
from tasks.speech.recogniser.recogniser import Recogniser
from tasks.speech.rescoring.settings import InternalModel
from tasks.speech.rescoring.tuning import BONUS, INTERNAL, LM
from tasks.speech.search.beam_search import Fusion
from tasks.speech.search.scorer import Scorer

Scorers = Mapping[str, Scorer]
"""Scorers by the names of their weights."""


def fusion_scorers(model: str, internal: InternalModel, recogniser: Recogniser) -> tuple[Scorers, str | None]:
    """The scorers for a recogniser's beam search, and the hash of the language model's vocabulary."""
    language_model = open_language_model(model)
    words, units = language_model.next_words(), SpelledUnits(recogniser.units)
    scorer: Scorer
    if isinstance(words, WholeWords):
        scorer = CompletedWords(words, units)
    elif is_of_units(words.vocabulary):
        scorer = UnitModel(words, recogniser.units.pieces)
    else:
        scorer = WordLookahead(words, units)
    found: dict[str, Scorer] = {BONUS: WordCounts(units), LM: scorer}
    if internal == "zero_encoder":
        found[INTERNAL] = ZeroEncoder()
    return found, language_model.vocabulary_hash


def weighted(scorers: Scorers, weights: Mapping[str, float]) -> Fusion:
    """The scorers that the search adds up. Words are always counted; others need a weight."""
    return {name: (scorer, weights[name]) for name, scorer in scorers.items() if weights[name] or name == BONUS}
