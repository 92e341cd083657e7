"""What ``log_linear`` and ``downstream`` learn before the first line is filled, once for all devices.

Reads generic text, word counts, kept words, and for ``prior_steps`` and ``prior: counted`` the masked text; never the
sidecar. What ``prior: counted`` learns from that has its noise already when it comes here.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.corpora.text_lines import read_corpus, read_lines
from tasks.corpora.words import fold
from tasks.errors import CorpusError, ModelError
from tasks.filling.choices.downstream import DownstreamWeighing
from tasks.filling.choices.log_linear import LogLinearScores
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.kept_words import KeptWords
from tasks.filling.log_linear.candidate_scores import candidate_log_probabilities, count_slots, places_of_corpus
from tasks.filling.log_linear.downstream_scores import DownstreamScores, Surroundings
from tasks.filling.log_linear.feature_weights import FittedWeights, fit_weights
from tasks.filling.log_linear.options import counts_masked_words, needs_tuning_text, refuse_causal
from tasks.filling.log_linear.tuning_places import TuningPlace, TuningText, tuning_text
from tasks.filling.log_linear.word_prior import estimate_prior, match_frequencies, mean_probabilities
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.settings import Downstream, LogLinear

_DRAWN = 16
"""Words that each true word is told from where the language model's weight is learned."""
_LANGUAGE_MODEL_PLACES = 1000
"""At most so many places for that."""
_START = {"filler": 1.0, "frequency": 0.0, "average": 0.0, "language_model": 0.0}
"""Weights of ``sample``."""


@dataclass(frozen=True)
class PreparedWeighing:
    """What the choice of words needs, and what the report says of it."""

    allowed: np.ndarray
    """``(W,)`` booleans: the candidates among the words that the filler can write."""
    weighing: DownstreamWeighing
    """Of ``log_linear`` only the proposal counts."""
    measured: dict[str, Any]
    frequencies: WordFrequencies
    """How frequent words are taken to be, those that the filler cannot write among them."""


def prepare(
    arguments: argparse.Namespace, settings: LogLinear | Downstream, threads: int, wanted: WordFrequencies | None = None
) -> PreparedWeighing:
    """Learn weights and prior for a fill; ``arguments`` are those of ``palimpsest fill``.

    ``wanted``: how frequent words are in the private domain, the same words as in the word counts; the word counts
    themselves if ``None``.

    Raises ``ParameterError`` where the filler is a causal language model, ``CorpusError`` where no tuning place is
    found, and ``ModelError`` where filler or language model cannot be used, or the filler can write no candidate.
    """
    from tasks.torch_setup import set_up_torch

    set_up_torch(threads)
    refuse_causal(settings, arguments.filler)
    kept = KeptWords.read(arguments.kept_words)
    frequencies = WordFrequencies.read(arguments.word_counts, letters=counts_masked_words(settings))
    model = MaskedLanguageModel.load(arguments.filler)
    candidates = candidate_words(model, arguments.filler, frequencies)
    language_model = None
    if isinstance(settings, Downstream):
        language_model = DownstreamScores(arguments.language_model, frequencies, settings.following_words)
    lines = read_corpus(arguments.tuning_text) if needs_tuning_text(settings) else None
    corpus = None
    if settings.prior_steps or counts_masked_words(settings):
        number = count_slots(read_lines(arguments.input), merge_markers=settings.merge_markers)
        corpus = (number, read_lines(arguments.input))
    return prepared_weighing(model, candidates, kept, wanted or frequencies, settings, lines, corpus, language_model)


def candidate_words(model: MaskedLanguageModel, name: str, frequencies: WordFrequencies) -> CandidateWords:
    """The words that the filler can write, the same as when it fills."""
    from tasks.filling.masked_lm.candidate_words import candidate_words as find

    return find(model.tokenizer, name=name, known_words=frequencies.folded())


def prepared_weighing(
    model: Any,
    candidates: CandidateWords,
    kept: KeptWords,
    frequencies: WordFrequencies,
    settings: LogLinear | Downstream,
    lines: Sequence[str] | None,
    corpus: tuple[int, Iterable[str]] | None,
    language_model: DownstreamScores | None,
) -> PreparedWeighing:
    """The same from objects: ``lines`` of generic text, if needed; ``corpus``: number of slots and masked lines, if
    the prior is to be adjusted."""
    counts = _counts_of_candidates(candidates, frequencies)
    allowed = kept.off_list(candidates.words) & (counts > 0)
    if not allowed.any():
        raise ModelError(
            f"filler {model.name!r} can write no word that is off the list of kept words and in the word counts: "
            "nothing to choose"
        )
    log_frequency = np.log(counts[allowed] / counts[allowed].sum())  # (A,)
    learner = _Learner(model, candidates, kept, settings, allowed, log_frequency, language_model)
    if lines is not None:
        learner.read(lines)
    learned_proposal = learner.proposal_weights()
    proposal = learner.with_prior(learned_proposal)
    shift = np.zeros(len(log_frequency))
    if corpus is not None:
        number, masked = corpus
        places = places_of_corpus(masked, number, settings.prior_places, merge_markers=settings.merge_markers)
        if places:
            table = candidate_log_probabilities(model, candidates, allowed, places)
            table *= np.float32(proposal["filler"])
            table -= (proposal["average"] * learner.log_average).astype(np.float32)
            groups = _groups_of_candidates(candidates, frequencies, allowed)
            if groups is None:
                start = np.exp(proposal["frequency"] * log_frequency)
                start /= start.sum()
                shift = np.log(estimate_prior(table, start, settings.prior_steps, settings.prior_smoothing) / start)
            else:
                table += (proposal["frequency"] * log_frequency).astype(np.float32)
                wanted = np.bincount(groups, weights=np.exp(log_frequency))
                matched = match_frequencies(table, groups, wanted)
                shift = matched.log_multipliers
                learner.measured["matched_frequencies"] = matched.measured()
        learner.measured["prior_places"] = len(places)
    learned = learner.final_weights(learned_proposal)
    final = learner.with_prior(learned)

    def scores(weights: dict[str, float]) -> LogLinearScores:
        constant = weights["frequency"] * log_frequency - weights["average"] * learner.log_average + shift
        everywhere = np.full(len(allowed), constant.min())  # words that are written as a fallback only
        everywhere[allowed] = constant
        return LogLinearScores(weights["filler"], everywhere.astype(np.float32))

    measured = {
        "candidates": int(np.count_nonzero(allowed)),
        "weights": final,
        "learned_weights": learned,
        **learner.measured,
    }
    weighing = DownstreamWeighing(scores(proposal), scores(final), final.get("language_model", 0.0))
    return PreparedWeighing(allowed, weighing, measured, frequencies)


def _counts_of_candidates(candidates: CandidateWords, frequencies: WordFrequencies) -> np.ndarray:
    """``(W,)`` how often each stands in generic text: in any case, or as written where the filler knows capitals."""
    counts: dict[str, int] = {}
    for word, count in zip(frequencies.words, frequencies.counts.tolist(), strict=True):
        key = word if candidates.cased else fold(word)
        counts[key] = counts.get(key, 0) + count
    return np.array([counts.get(word, 0) for word in candidates.words], dtype=np.float64)


def _groups_of_candidates(
    candidates: CandidateWords, frequencies: WordFrequencies, allowed: np.ndarray
) -> np.ndarray | None:
    """``(A,)`` the groups of the allowed candidates, numbered from 0 without a gap; ``None`` where nothing is known."""
    if frequencies.groups is None:
        return None
    group = dict(zip(map(fold, frequencies.words), frequencies.groups.tolist(), strict=True))
    chosen = [group[fold(word)] for word, is_allowed in zip(candidates.words, allowed, strict=True) if is_allowed]
    return np.unique(chosen, return_inverse=True)[1]


class _Learner:
    """The weights of one fill, and the tables that they are learned from."""

    def __init__(
        self,
        model: Any,
        candidates: CandidateWords,
        kept: KeptWords,
        settings: LogLinear | Downstream,
        allowed: np.ndarray,
        log_frequency: np.ndarray,
        language_model: DownstreamScores | None,
    ) -> None:
        self._model, self._candidates, self._kept, self._settings = model, candidates, kept, settings
        self._allowed, self._log_frequency, self._language_model = allowed, log_frequency, language_model
        self._fixed: dict[str, float | None] = settings.weights.model_dump()
        self._words = [word for word, is_allowed in zip(candidates.words, allowed, strict=True) if is_allowed]
        self.log_average = np.zeros(len(log_frequency))
        """``(A,)``: log of the filler's mean probability over places of generic text; 0 where there is none."""
        self.measured: dict[str, Any] = {}
        self._text = TuningText([], 0, 0)
        self._targets = np.zeros(0, dtype=np.int64)
        self._table = np.zeros((0, len(log_frequency)), dtype=np.float32)

    def read(self, lines: Sequence[str]) -> None:
        """Mask generic text and score its places; ``CorpusError`` where there is none."""
        settings = self._settings
        text = tuning_text(
            lines,
            self._kept,
            {word: index for index, word in enumerate(self._words)},
            cased=self._candidates.cased,
            most=settings.tuning_places,
            share=settings.tuning_share,
            seed=settings.tuning_seed,
            sees_fills=settings.order != "all_at_once",
            merge_markers=settings.merge_markers,
        )
        if not text.places:
            raise CorpusError(
                "the tuning text has no masked place of one word that the filler can write, so no weight can be "
                "learned; give more generic text, such as the held-out part of what the filler was trained on"
            )
        self._text = text
        self._targets = np.array([place.target for place in text.places])
        self._table = candidate_log_probabilities(
            self._model, self._candidates, self._allowed, [place.place for place in text.places]
        )
        self.log_average = np.log(np.maximum(mean_probabilities(self._table), np.finfo(np.float64).tiny))
        self.measured |= {
            "tuning_places": len(text.places),
            "tuning_masked_words": text.masked_words,
            "tuning_places_without_candidate": text.without_candidate,
        }

    def proposal_weights(self) -> dict[str, float]:
        """Those of filler, frequency and average; learned over all candidates where they are not fixed."""
        names = ("filler", "frequency", "average")
        start, free = self._start(names)
        if not len(self._targets):
            return dict(zip(names, start, strict=True))
        table, log_frequency, log_average = self._table, self._log_frequency, self.log_average

        def features(part: slice) -> np.ndarray:
            rows = table[part]
            return np.stack([rows, *(np.broadcast_to(of, rows.shape) for of in (log_frequency, -log_average))])

        fitted = fit_weights(features, self._targets, table.shape[1], start, free)
        # Where weights are fixed the fit begins at them; the report compares with ``sample`` always.
        sample = fit_weights(features, self._targets, table.shape[1], [1.0, 0.0, 0.0], [False] * 3)
        self.measured |= {"log_likelihood_before": sample.before, "log_likelihood": fitted.after}
        return _named(names, fitted)

    def final_weights(self, proposal: dict[str, float]) -> dict[str, float]:
        """With the language model's; without a language model those of the proposal."""
        if self._language_model is None:
            return proposal
        names = ("filler", "frequency", "average", "language_model")
        start, free = self._start(names)
        # Those that are not fixed begin where the proposal is.
        start = [proposal.get(name, value) for name, value in zip(names, start, strict=True)]
        if not any(free):
            return dict(zip(names, start, strict=True))
        features, targets = self._drawn_features(self._language_model, proposal)
        fitted = fit_weights(lambda part: features[:, part], targets, features.shape[2], [*start, -1.0], [*free, False])
        self.measured |= {
            "language_model_tuning_places": len(targets),
            "language_model_log_likelihood_before": fitted.before,
            "language_model_log_likelihood": fitted.after,
            "learned_proposal_weights": proposal,
        }
        return _named(names, fitted)

    def with_prior(self, weights: dict[str, float]) -> dict[str, float]:
        """The weights to fill with, of those that fit the tuning text: where the prior is that of the word counts, the
        filler's average is divided out as strongly as the filler counts, and frequency counts in full."""
        if self._settings.prior == "tuning_text":
            return weights
        shifted = {**weights, "frequency": 1.0, "average": weights["filler"]}
        return {name: shifted[name] if self._fixed[name] is None else weight for name, weight in weights.items()}

    def _start(self, names: Sequence[str]) -> tuple[list[float], list[bool]]:
        fixed = [self._fixed[name] for name in names]
        start = [_START[name] if value is None else value for name, value in zip(names, fixed, strict=True)]
        return start, [value is None for value in fixed]

    def _drawn_features(
        self, language_model: DownstreamScores, proposal: dict[str, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """``(5, N, 1 + drawn)``: the four features and log q, of each place's true word (the first) and of words drawn
        from q; and ``(N,)`` zeros, the index of the true one."""
        places = self._text.places[:_LANGUAGE_MODEL_PLACES]
        random = np.random.default_rng(self._settings.tuning_seed)
        constant = proposal["frequency"] * self._log_frequency - proposal["average"] * self.log_average
        features = np.empty((5, len(places), 1 + _DRAWN))
        words, surroundings = [], []
        for row, place in enumerate(places):
            scores = proposal["filler"] * self._table[row].astype(np.float64) + constant
            scores -= np.logaddexp.reduce(scores)
            drawn = np.searchsorted(np.cumsum(np.exp(scores)), random.random(_DRAWN), side="right")
            chosen = np.array([place.target, *np.minimum(drawn, len(scores) - 1)])
            features[0, row] = self._table[row, chosen]
            features[1, row] = self._log_frequency[chosen]
            features[2, row] = -self.log_average[chosen]
            features[4, row] = scores[chosen]
            words.append([self._words[index] for index in chosen])
            surroundings.append(_surroundings(place))
        features[3] = np.stack(language_model.score(surroundings, words))
        return features, np.zeros(len(places), dtype=np.int64)


def _surroundings(place: TuningPlace) -> Surroundings:
    """What the language model sees: from left to right, all before the place is known."""
    texts = place.place.texts
    return Surroundings(texts[0], texts[1], len(texts) == 2)


def _named(names: Sequence[str], fitted: FittedWeights) -> dict[str, float]:
    # Behind the named ones there may be the weight of log q, which is fixed.
    return {name: float(weight) for name, weight in zip(names, fitted.weights, strict=False)}
