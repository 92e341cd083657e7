"""The numbers of step 5, and the protocol that they follow.

The protocol (its one line is the ``signature``, which stands beside each number):

- ``unit=word``: a target is a word of the original text after the normalisation of ``normalisation.py``;
- ``norm``: the version of that normalisation;
- ``vocab``: the first digits of the vocabulary's hash; perplexities over different vocabularies do not compare;
- ``eos=yes``: the end of each sentence is a target, and counts in both perplexities;
- ``unk=in``: a word outside the vocabulary is the target ``<unk>``. A model that saw many such words in training finds
  it probable, so ``perplexity_known`` leaves these targets out (they stay in the context), and ``oov_rate`` is their
  share of the words;
- ``context=sentence``: each sentence by itself; longer than ``window`` targets, it is read in windows ``stride``
  targets apart, each target scored once;
- ``markers=in_vocabulary``: markers such as ``[MASK]`` are tokens like any other, as in the paper. Probability that a
  model keeps for them is lost on unmasked text; that is what Baseline0 pays. Nothing is renormalised away.
"""

from typing import Any

from tasks.language_model.bootstrap import perplexity_interval, perplexity_of
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.normalisation import NORMALISATION
from tasks.language_model.sentence_scores import SentenceScores
from tasks.language_model.settings import EvaluationSettings
from tasks.language_model.vocabulary import Vocabulary
from tasks.language_model.windows import overlap_of


def signature_of(vocabulary: Vocabulary, maximum_tokens: int) -> str:
    """The protocol in one line."""
    stride = maximum_tokens - overlap_of(maximum_tokens)
    return (
        f"ppl|unit=word|norm={NORMALISATION}|vocab={vocabulary.hash[:8]}|eos=yes|unk=in|context=sentence"
        f"|window={maximum_tokens}|stride={stride}|markers=in_vocabulary"
    )


def measure_perplexity(
    scores: SentenceScores, text: EncodedText, settings: EvaluationSettings, signature: str
) -> dict[str, Any]:
    """All numbers of an evaluation; intervals are ``[low, high]``, and what is undefined is ``None``."""
    measured: dict[str, Any] = {}
    for suffix, sums, targets in (
        ("", scores.log_probability, scores.targets),
        ("_known", scores.known_log_probability, scores.known_targets),
    ):
        measured[f"perplexity{suffix}"] = perplexity_of(sums, targets)
        measured[f"perplexity{suffix}_ci"] = perplexity_interval(
            sums, targets, settings.bootstrap_samples, settings.confidence, settings.seed
        )
    target_count, known_count = int(scores.targets.sum()), int(scores.known_targets.sum())
    return {
        **measured,
        "log_probability": float(scores.log_probability.sum()),
        "log_probability_known": float(scores.known_log_probability.sum()),
        "oov_rate": (target_count - known_count) / text.words,
        "words": text.words,
        "targets": target_count,
        "targets_known": known_count,
        "sentences": text.sentences,
        "empty_lines": text.empty_lines,
        "confidence": settings.confidence,
        "signature": signature,
    }
