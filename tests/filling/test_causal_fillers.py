"""Filling with causal LMs: known words forced, or whole sentences written freely; both contexts counted."""

import math
from functools import partial
from itertools import pairwise

import pytest
import torch
from masked_sentences import masked
from tiny_causal_models import (
    causal_tokenizer,
    llama_of_last_piece,
    random_causal_model,
    random_llama,
    sentence_piece_tokenizer,
)

from tasks.corpora.masked_text import MASK
from tasks.errors import ModelError
from tasks.filling.causal_lm.constrained import ConstrainedFiller
from tasks.filling.causal_lm.free import FreeFiller
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.read_texts import ReadTexts
from tasks.filling.filled_lines import Part, fill_part
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import Casing
from tasks.filling.methods.free import Free
from tasks.filling.methods.log_linear import LogLinear
from tasks.filling.methods.sample import Sample
from tasks.filling.methods.top_1 import Top1
from tasks.filling.methods.top_k import TopK
from tasks.filling.unigram_filler import UnigramFiller

TOKENIZER = causal_tokenizer()
TOP_1 = Top1(kind="top_1")
GPT2 = partial(random_causal_model, model_type="gpt2", num_key_value_heads=None)


def filled(model, lines, settings=TOP_1, *, tokenizer=TOKENIZER, kept=(), instruction=None, **more):
    """The lines, and how many slots were windowed."""
    language_model = CausalLanguageModel(model, tokenizer, "tiny", instruction=instruction)
    filler = ConstrainedFiller(language_model, settings, AllowedWords(kept), MarkerRandomness(1), **more)
    casing = Casing({}, filler_is_cased=filler.is_cased)
    result = fill_part(Part(1, list(lines), None), filler, casing, merge_markers=settings.merges_markers)
    return result.lines, filler.counts["windowed_slots"]


def left_only(settings=TOP_1, candidates=4):
    return type(settings)(**settings.model_dump() | {"right_context": {"words": 0, "candidates": candidates}})


def of_scores(others=-20.0, **scores):
    """A model of scores by the last piece, spelled with ``_`` for a space."""
    table = {
        last.replace("_", "Ġ"): {piece.replace("_", "Ġ"): score for piece, score in following.items()}
        for last, following in scores.items()
    }
    return llama_of_last_piece(TOKENIZER, table, others=others)


def test_the_right_context_overrules_the_left_and_the_end_of_a_word_counts_once():
    # Behind "the": cat 1 better than dog. "sat" behind cat is 5 worse than behind dog.
    behind = {"_cat": {"_sat": -5.0, "_ran": 0.0}, "_dog": {"_sat": 0.0, "_ran": -5.0}}
    model, lines = of_scores(he={"_cat": 3.0, "_dog": 2.0}, **behind), ["the [MASK] sat", "the [MASK] ran"]
    assert filled(model, lines)[0] == ["the dog sat", "the cat ran"]
    assert filled(model, lines, left_only())[0] == ["the cat sat", "the cat ran"]
    # Behind cat the word may go on, which the probability of "sat" has already: 0.3 is more than 0.2.
    behind = {
        "_cat": {"_sat": math.log(0.3), "at": math.log(0.7)},
        "_dog": {"_sat": math.log(0.2), "_ran": math.log(0.8)},
    }
    model = of_scores(others=-30.0, he={"_cat": 1.0, "_dog": 1.0}, **behind)
    assert filled(model, ["the [MASK] sat"])[0] == ["the cat sat"]


def test_words_of_any_number_of_pieces_are_drawn_by_their_weights():
    assert TOKENIZER.tokenize(" matat") == ["Ġmat", "at"]
    likely = {"_cat": 5.0, "_dog": math.log(3), "_mat": 0.0}
    model = of_scores(others=-30.0, he=likely, _mat={"at": 9.0}, _dog={"_sat": 9.0}, at={"_sat": 9.0})
    # Three squared to one times three.
    settings = LogLinear(kind="log_linear", weights={"filler": 2.0})
    factors = {"cat": 0.0, "dog": 0.0, "matat": math.log(3)}
    fills, _ = filled(model, ["the [MASK]"] * 400, left_only(settings, 2), kept=["cat"], word_factors=factors)
    dogs = fills.count("the dog")
    assert dogs + fills.count("the matat") == 400
    # 300 expected, standard deviation 8.7
    assert 265 < dogs < 335


LINES = [
    "the [MASK] sat on the [MASK].",
    "",
    "no marker",
    "the dog saw [MASK]'s cat ([MASK])",
    "[MASK] [MASK]",
    r"[\MASK] saw <s> [PERSON] </s>",
    "日本語 [MASK] 😀",
    "pre[MASK]post",
]
SENTENCE_PIECES = sentence_piece_tokenizer()


@pytest.mark.parametrize(
    ("model", "settings", "instruction", "tokenizer"),
    [
        (random_llama(SENTENCE_PIECES), TOP_1, "Predict", SENTENCE_PIECES),
        (GPT2(TOKENIZER), TopK(kind="top_k", k=4), None, TOKENIZER),
        (random_causal_model(TOKENIZER, "mistral", sliding_window=80), Sample(kind="sample"), "P", TOKENIZER),
    ],
    ids=["llama", "gpt2", "mistral"],
)
def test_every_shape_of_line_is_filled_and_batches_change_nothing(model, settings, instruction, tokenizer):
    options = {"tokenizer": tokenizer, "kept": ["the", "cat"], "instruction": instruction}
    lines, others = (
        filled(model, LINES, settings.model_copy(update={"batch_sentences": size}), **options)[0] for size in (1, 4)
    )
    assert lines == others
    assert lines[1:3] == ["", "no marker"]
    assert lines[5].startswith(f"[{MASK}] saw <s> ")
    assert len(lines[4].split()) == 1


def test_a_long_sentence_is_seen_through_a_window():
    line = "the cat sat on the mat and [MASK] ran to Paris, " * 8
    (result,), windowed = filled(GPT2(TOKENIZER, positions=64), [line], instruction="Predict")
    assert len(result.split()) == 8 * 11
    assert 0 < windowed <= 8


MODELS = {
    "llama": random_llama,
    "gpt2": GPT2,
    "mistral": partial(random_causal_model, model_type="mistral", sliding_window=48),
    "gemma3": partial(random_causal_model, model_type="gemma3_text", sliding_window=48, head_dim=8),
    "bloom": partial(random_causal_model, model_type="bloom", n_head=4, n_layer=2, num_key_value_heads=4),
}


@pytest.mark.parametrize("name", MODELS)
def test_continuations_have_the_scores_of_the_whole_text(name):
    """Texts and continuations of different lengths; and scores that are no numbers stop the work."""
    language_model = CausalLanguageModel(MODELS[name](TOKENIZER), TOKENIZER, "tiny")
    texts, more = [[5, 9] * 30, [5, 11, 40]], [[12, 7, 30], [8]]

    def close(found, pieces):
        with torch.inference_mode():
            whole = language_model.model(input_ids=torch.tensor([pieces])).logits[0]
        return torch.allclose(found, whole[-1], atol=1e-4)

    read = ReadTexts(language_model, texts)
    assert all(map(close, read.scores, texts))
    for _ in range(2):  # a continuation changes no text
        first, second, *others = read.continued([0, 1, 1], [*more, more[0]], [2, 1, 1])
        assert close(first, texts[0] + more[0][:2])
        assert close(second, texts[0] + more[0])
        assert all(map(close, others, (texts[1] + each for each in more[::-1])))
    with torch.no_grad():
        language_model.model.get_input_embeddings().weight[9] = float("nan")
    with pytest.raises(ModelError, match="not numbers"):
        ReadTexts(language_model, [[9]])


# Whole sentences --------------------------------------------------------------------------------------------------


def writer():
    """A model that writes "Tom ran to the red house" whatever it is given."""
    always = ["Ċ", "Tom", "Ġran", "Ġto", "Ġthe", "Ġred", "Ġhouse", "</s>"]
    return llama_of_last_piece(TOKENIZER, {last: {following: 9.0} for last, following in pairwise(always)})


def free(model):
    """The filler; what it hands over becomes ``word``."""
    language_model = CausalLanguageModel(model, TOKENIZER, "tiny", instruction="Predict the [MASK] tokens")
    fallback = UnigramFiller({None: WordFrequencies.of([("word", 1)])}, MarkerRandomness(1))
    return FreeFiller(language_model, Free(kind="free"), MarkerRandomness(1), fallback)


def words(filler, *lines):
    sentences = [masked(line, number, style="mask", merge=True) for number, line in enumerate(lines, start=1)]
    fills = filler.fill(sentences, int)
    assert all(fill.fallback == (fill.word == "word") for line in fills for fill in line)
    return [[fill.word for fill in line] for line in fills]


def test_the_words_at_the_markers_are_taken_and_other_sentences_handed_over():
    filler = free(writer())
    lines = ("Tom ran to the {x} house", "{x} ran to the red {x}", "Ann ran to the {x} house", "none", "")
    assert words(filler, *lines) == [["red"], ["Tom", "house"], ["word"], [], []]
    counts = filler.counts
    assert (counts["free_sentences"], counts["free_malformed"], counts["free_handed_over"]) == (3, 1, 1)
    filler = free(random_llama(TOKENIZER, positions=64))
    assert words(filler, "the cat sat on the mat " * 9 + "{x}") == [["word"]]
    assert filler.counts["free_too_long"] == 1
