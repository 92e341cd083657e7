"""Fine-tuning a masked LM on in-domain text with the masked-LM task (paper 3.2, FT)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.errors import CorpusError, ModelError
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.filler_folder import save_filler
from tasks.filling.masked_lm.masked_accuracy import LONGEST_SENTENCE, accuracy_of_pieces
from tasks.filling.masked_lm.masked_batches import WordMasker
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel, load_masked_model
from tasks.filling.masked_lm.masked_training import enough_lines, train_on_masked_words
from tasks.filling.masked_lm.padding_probe import mixes_padding
from tasks.filling.masked_sentence import MaskedSentence
from tasks.filling.training.tuning_settings import MaskedLanguageModelTuning
from tasks.filling.training.tuning_steps import before_and_after
from tasks.filling.training.tuning_text import TuningText


def tune_masked_filler(base: str, text: TuningText, settings: MaskedLanguageModelTuning, output: str) -> dict[str, Any]:
    """Tune body and head, write the filler's folder, and return what was measured.

    The word embeddings, which are the head's decoder too, stay as they are: most of their rows would hardly be seen.
    Raises ``ModelError`` where the base cannot be loaded or has no head, or where the loss stops being a number, and
    ``CorpusError`` where no sentence has a word to mask.
    """
    model, tokenizer, missing = load_masked_model(base)
    if missing:
        raise ModelError(
            f"base {base!r} has no masked-LM head ({len(missing)} weights are missing, such as {missing[0]!r}); "
            "train one with 'palimpsest train-filler --train-head' and give its output folder"
        )
    language_model = MaskedLanguageModel(model, tokenizer, base)
    random = np.random.default_rng(settings.seed)
    masker = WordMasker(tokenizer, candidate_words(tokenizer, name=base), model.config.vocab_size)
    held_out = _pieces(language_model, masker, text.held_out)
    longest = min(settings.longest_sentence, language_model.frame.longest)
    sentences = masker.encode(enough_lines(text.lines, settings, longest, random), longest)
    if not sentences:
        raise CorpusError("the text to tune on has no sentence with a word to mask")
    equal_lengths = mixes_padding(language_model)
    before = accuracy_of_pieces(model, masker, held_out, equal_lengths=equal_lengths, name=base)
    model.get_input_embeddings().weight.requires_grad_(False)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    measured = train_on_masked_words(
        model,
        masker,
        sentences,
        settings,
        [{"params": weights, "lr": settings.learning_rate}],
        random,
        equal_lengths=equal_lengths,
        remedy="lower learning_rate",
        name="tuning",
    )
    after = accuracy_of_pieces(model, masker, held_out, equal_lengths=equal_lengths, name=output)
    save_filler(model, tokenizer, output)
    parameters = sum(weight.numel() for weight in model.parameters())
    tuned = sum(weight.numel() for weight in weights)
    return {**measured, "parameters": parameters, "tuned_parameters": tuned, **before_and_after(before, after)}


def _pieces(
    language_model: MaskedLanguageModel, masker: WordMasker, sentences: Sequence[MaskedSentence]
) -> list[list[int]]:
    """The held-out sentences that have a word to mask, mask tokens in their slots, special pieces at their ends."""
    frame = language_model.frame
    room = min(frame.room, LONGEST_SENTENCE)
    encoded = language_model.encode([sentence.texts for sentence in sentences])
    whole = [[*frame.prefix, *pieces[:room], *frame.suffix] for pieces in encoded]
    found = [pieces for pieces in whole if masker.maskable(np.array([pieces])).any()]
    if not found:
        raise CorpusError(
            f"none of the {len(sentences)} held-out sentences has a word to guess; raise held_out_share, or take a "
            "larger corpus"
        )
    return found
