import pytest
from tiny_masked_models import (
    bert_that_avoids_repetition,
    random_bert,
    word_piece_tokenizer,
)

from tasks.errors import ModelError
from tasks.filling.filled_corpus import CorpusFiller, Shard
from tasks.filling.frequencies.word_frequencies import KeptWords
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_sentence import Casing
from tasks.filling.methods.top_1 import Top1

WORD_PIECES = word_piece_tokenizer()
ROUNDING = 1e-4
"""Sums of the same float32 products in another order."""


def filled(model, tokenizer, lines, settings=None, *, kept=(), seed=1):
    settings = settings or Top1(kind="top_1")
    language_model = MaskedLanguageModel(model, tokenizer, "tiny").prepared()
    candidates = candidate_words(tokenizer, name="tiny")
    kept = KeptWords(kept)
    choice = settings.choice(kept.off_list(candidates.words), MarkerRandomness(seed))
    filler = MaskedFiller(language_model, candidates, {None: choice}, batch_sentences=settings.batch_sentences)
    casing = Casing({}, filler_is_cased=True)
    return CorpusFiller(filler, casing, kept, settings.merge_markers).fill_shard(Shard(0, 1, list(lines), None)).lines


def test_the_second_fill_depends_on_the_first():
    model = bert_that_avoids_repetition(WORD_PIECES, "tom", "paris")
    lines = ["[MASK] on [MASK]", "red [MASK]", "tom on [MASK]", "[MASK], [MASK] on [MASK]"]
    assert filled(model, WORD_PIECES, lines) == ["Tom on paris", "red tom", "tom on paris", "Tom, paris on paris"]


def test_a_long_sentence_is_seen_through_a_window_round_the_marker():
    language_model = MaskedLanguageModel(random_bert(WORD_PIECES, positions=12), WORD_PIECES, "tiny")
    (pieces,) = language_model.encode([("the cat " * 50, " sat" * 40)])
    assert len(pieces) == 141
    (window,) = language_model.frame.windows(pieces, [100])
    assert len(window.pieces) == 12
    assert window.positions == [6]
    assert window.pieces[6] == language_model.mask_entry
    assert WORD_PIECES.convert_ids_to_tokens(window.pieces) == [
        "[CLS]", "cat", "the", "cat", "the", "cat", "[MASK]", "sat", "sat", "sat", "sat", "[SEP]",
    ]  # fmt: skip
    (window,) = language_model.frame.windows(pieces[95:102], [5])
    assert window.pieces == [2, *pieces[95:102], 3]
    assert language_model.frame.windows(pieces[100:], [0])[0].positions == [1]
    assert language_model.frame.windows(pieces[:101], [100])[0].positions == [10]


def test_a_hub_that_cannot_be_reached_is_asked_once(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelError, match="neither a folder nor reachable on the hub"):
        MaskedLanguageModel.load("no-such-owner/no-such-model")
    assert constants.HF_HUB_OFFLINE
