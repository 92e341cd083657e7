"""Which filler belongs to the settings of a fill: everything that one device needs, built in its own process."""

import argparse
from pathlib import Path
from typing import Any

from tasks.filling.filled_corpus import CorpusFiller
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.kept_words import KeptWords
from tasks.filling.log_linear.options import counts_masked_words
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.order_of_filling import refuse_order
from tasks.filling.restoration import GenericWords
from tasks.filling.slot_originals import ChoiceWithoutOriginals, ForbiddenOriginals


def model_folders(filler: str | None) -> list[str]:
    """The folders of a filler and of the base that its adapter belongs to, whose content a report names; a hub name has
    none.

    Raises ``ModelError`` where an adapter does not say what it belongs to.
    """
    if not filler or not Path(filler).is_dir():
        return []
    from tasks.filling.causal_lm.filler_folder import base_of

    base = base_of(filler)
    return [filler, base] if base and Path(base).is_dir() else [filler]


def corpus_filler(
    arguments: argparse.Namespace, settings: Any, threads: int, secret: bytes, prepared: Any = None
) -> CorpusFiller:
    """All that one device needs to fill shards; ``arguments`` are those of ``palimpsest fill``, ``secret`` what
    ``secret_of_draws`` says, ``prepared`` what was learned before the first line, for the methods that learn: by
    ``log_linear.preparation``, or the frequencies of ``domain_frequencies``."""
    kept = KeptWords.read(arguments.kept_words)
    frequencies = None
    if arguments.word_counts:
        frequencies = WordFrequencies.read(arguments.word_counts, letters=counts_masked_words(settings))
    originals = ForbiddenOriginals() if settings.forbid_original else None
    classes = None
    if settings.classes == "match":
        from tasks.filling.surrogates.class_check_setup import ClassChecks

        randomness = MarkerRandomness(arguments.seed, secret)
        classes = ClassChecks(settings.class_check, threads, randomness, kept, frequencies, settings.forbid_original)
    filler, casing = _filler(arguments, settings, threads, kept, frequencies, secret, originals, classes, prepared)
    if classes is not None:
        filler = classes.checked(filler, casing)
    generic = None
    if arguments.sidecar and frequencies:
        generic = GenericWords(frequencies.off_list_probabilities(kept), frequencies.ranks())
    return CorpusFiller(filler, casing, kept, settings.merge_markers, generic, originals, settings.copies)


def secret_of_draws(arguments: argparse.Namespace, settings: Any) -> bytes:
    """What draws are made of besides the seed: nothing, unless they keep clear of what was masked.

    It is found once for all devices: a sidecar that is replaced meanwhile would give each of them other draws.
    """
    from tasks.filling.fill_secret import draws_from_secret, fill_secret

    if not arguments.sidecar or not draws_from_secret(settings):
        return b""
    return fill_secret(arguments.sidecar)


def _filler(
    arguments: argparse.Namespace,
    settings: Any,
    threads: int,
    kept: Any,
    frequencies: Any,
    secret: bytes,
    originals: Any,
    classes: Any = None,
    prepared: Any = None,
) -> tuple[Any, Any]:
    """The filler that the settings ask for, and how its words are cased; ``originals`` is what it must not write,
    ``classes`` restricts its choice to words of the marker's class."""
    from tasks.filling.casing import Casing, usual_forms

    keeps_clear = settings.forbid_original or settings.kind == "surrogate"
    randomness = MarkerRandomness(arguments.seed, secret if keeps_clear else b"")
    if settings.kind == "surrogate":
        from tasks.filling.surrogates.surrogate import surrogate_filler

        return surrogate_filler(settings, randomness, kept, frequencies)
    if not settings.uses_filler:
        from tasks.filling.choices.unigram import UnigramFiller

        return (
            UnigramFiller(prepared or frequencies, kept.off_list(frequencies.words), randomness, originals),
            Casing({}, filler_is_cased=True),
        )
    from tasks.torch_setup import set_up_torch

    set_up_torch(threads)
    from tasks.filling.causal_lm.filler import causal_filler, refuse_free
    from tasks.filling.causal_lm.filler_folder import is_causal

    if is_causal(arguments.filler):
        refuse_order(settings, arguments.filler)
        return causal_filler(arguments.filler, settings, kept, randomness, frequencies, originals)
    refuse_free(settings, arguments.filler)
    from tasks.filling.choices.methods import choice_of, hiding_choice_of
    from tasks.filling.masked_lm.candidate_words import candidate_words
    from tasks.filling.masked_lm.masked_filler import MaskedFiller
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

    model = MaskedLanguageModel.load(arguments.filler)
    candidates = candidate_words(
        model.tokenizer, name=arguments.filler, known_words=frequencies.folded() if frequencies else None
    )
    off_list = kept.off_list(candidates.words)
    choice: Any
    if originals is not None:
        hiding = hiding_choice_of(settings, off_list, randomness, prepared)
        choice = ChoiceWithoutOriginals(hiding, candidates.words, originals)
    else:
        choice = choice_of(settings, off_list, randomness, prepared)
    if classes is not None:
        choice = classes.restricted(choice, candidates.words)
    forms = usual_forms(zip(frequencies.words, frequencies.counts.tolist(), strict=True)) if frequencies else {}
    filler = MaskedFiller(
        model,
        candidates,
        choice,
        batch_sentences=settings.batch_sentences,
        order=settings.order,
        allowed=None if settings.kind == "top_1" else off_list,
    )
    casing = Casing(forms, filler_is_cased=candidates.cased)
    if getattr(settings, "beyond_vocabulary", False):
        from tasks.filling.choices.beyond_vocabulary import BeyondVocabulary

        chosen = [word for word, allowed in zip(candidates.words, prepared.allowed, strict=True) if allowed]
        return BeyondVocabulary(filler, chosen, prepared.frequencies, kept, randomness, originals), casing
    return filler, casing
