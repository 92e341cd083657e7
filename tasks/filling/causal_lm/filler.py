"""A causal language model with a filling method: which of the two ways of filling it is, and what it needs."""

from typing import Any

from tasks.errors import ParameterError
from tasks.filling.casing import Casing, usual_forms
from tasks.filling.causal_lm.constrained import ConstrainedFiller
from tasks.filling.causal_lm.free import FreeFiller
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.words import CausalWords
from tasks.filling.choices.unigram import UnigramFiller
from tasks.filling.filled_corpus import Filler
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.kept_words import KeptWords
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.settings import Free, Sample, Top1, TopK
from tasks.filling.slot_originals import ForbiddenOriginals
from tasks.model_source import check_model_folder, locate_model, unreachable


def causal_filler(
    name: str,
    settings: Top1 | TopK | Sample | Free,
    kept: KeptWords,
    randomness: MarkerRandomness,
    frequencies: WordFrequencies | None = None,
    originals: ForbiddenOriginals | None = None,
) -> tuple[Filler, Casing]:
    """Load a causal filler; ``free`` lets it write, the other methods force the known words.

    Raises ``ModelError`` as ``CausalLanguageModel.load``, and ``ParameterError`` where the settings are for another
    kind of filler, or where the unigram fallback has no word counts.
    """
    order = getattr(settings, "order", "left_to_right")
    if order != "left_to_right":
        raise ParameterError(f"order {order!r} needs a masked language model; {name!r} writes from left to right")
    if isinstance(settings, Free) and settings.fallback == "unigram" and frequencies is None:
        raise ParameterError("fallback 'unigram' needs --word-counts; 'palimpsest count-words' makes them")
    language_model = CausalLanguageModel.load(name)
    filler, cased = filler_of(language_model, settings, kept, randomness, frequencies, originals)
    forms = usual_forms(zip(frequencies.words, frequencies.counts.tolist(), strict=True)) if frequencies else {}
    return filler, Casing(forms, filler_is_cased=cased)


def filler_of(
    language_model: CausalLanguageModel,
    settings: Top1 | TopK | Sample | Free,
    kept: KeptWords,
    randomness: MarkerRandomness,
    frequencies: WordFrequencies | None = None,
    originals: ForbiddenOriginals | None = None,
) -> tuple[Filler, bool]:
    """The filler that the settings ask for, and whether it writes capital letters."""
    if isinstance(settings, Free) and settings.fallback == "unigram" and frequencies is not None:
        off_list = kept.off_list(frequencies.words)
        by_frequency = UnigramFiller(frequencies, off_list, randomness)
        return FreeFiller(language_model, settings, randomness, by_frequency), True
    size = language_model.model.get_output_embeddings().weight.shape[0]
    words = CausalWords.of(
        language_model.tokenizer,
        size,
        name=language_model.name,
        known_words=frequencies.folded() if frequencies else None,
    )
    cased = words.candidates.cased
    if not isinstance(settings, Free):
        return ConstrainedFiller(language_model, words, settings, kept, randomness, originals), cased
    best = Top1(kind="top_1", batch_sentences=settings.batch_sentences, right_context=settings.right_context)
    constrained = ConstrainedFiller(language_model, words, best, kept, randomness)
    return FreeFiller(language_model, settings, randomness, constrained), cased


def refuse_free(settings: Any, name: str) -> None:
    """``ParameterError`` where a masked language model is to write freely, ``ModelError`` where there is no model."""
    if settings.kind != "free":
        return
    source = locate_model(name)
    check_model_folder(source, name)
    from transformers import PretrainedConfig

    try:
        PretrainedConfig.get_config_dict(source)
    except Exception as error:
        # What is not there is of no kind.
        raise unreachable(name, error) from error
    raise ParameterError(
        f"method 'free' needs a causal language model, and filler {name!r} is none; "
        "take top_1, top_k or sample, or a filler such as 'gpt2'"
    )
