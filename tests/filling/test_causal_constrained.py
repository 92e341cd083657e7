"""Constrained filling: known words forced, one whole word per marker, both contexts counted."""

import math

import numpy as np
import pytest
from tiny_causal_models import (
    causal_tokenizer,
    llama_of_last_piece,
    random_causal_model,
    random_gpt2,
    random_llama,
    sentence_piece_tokenizer,
)

from tasks.corpora.masked_text import MASK
from tasks.errors import ModelError
from tasks.filling.causal_lm.candidates import log_weights
from tasks.filling.causal_lm.constrained import ConstrainedFiller
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.filled_lines import Part, fill_part
from tasks.filling.frequencies.word_frequencies import AllowedWords
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import Casing
from tasks.filling.methods.log_linear import LogLinear, LogLinearWeights
from tasks.filling.methods.sample import Sample
from tasks.filling.methods.top_1 import Top1
from tasks.filling.methods.top_k import TopK
from tasks.filling.settings import RightContext

TOKENIZER = causal_tokenizer()
SENTENCE_PIECES = sentence_piece_tokenizer()
LEFT_ONLY = RightContext(words=0, candidates=4)
LINES = [
    "the [MASK] sat on the [MASK].",
    "[MASK] ran to [MASK], and Ann sat",
    "",
    "no marker",
    "the dog saw [MASK]'s cat ([MASK])",
    "[MASK]",
    "[MASK] [MASK]",
    r"[\MASK] saw <s> [PERSON] </s>",
    "日本語 [MASK] 😀",
    "pre[MASK]post",
]


def filled(
    model, lines, settings, *, tokenizer=TOKENIZER, kept=(), seed=1, instruction=None, counts=None, records=None, **more
):
    language_model = CausalLanguageModel(model, tokenizer, "tiny", instruction=instruction)
    kept = AllowedWords(kept)
    filler = ConstrainedFiller(language_model, settings, kept, MarkerRandomness(seed), **more)
    casing = Casing({}, filler_is_cased=filler.is_cased)
    result = fill_part(Part(1, list(lines), records), filler, casing, merge_markers=settings.merges_markers)
    if counts is not None:
        counts.update(filler.counts, fallbacks=sum(fill.fallback for fills in result.fills for fill in fills))
    return result.lines


def table(**scores):
    """Scores by the last piece, spelled with ``_`` for a space."""

    def spelled(piece):
        return piece.replace("_", "Ġ")

    return {spelled(last): {spelled(p): s for p, s in following.items()} for last, following in scores.items()}


def test_the_right_context_overrules_the_left():
    # Behind "the": cat 1 better than dog. "sat" behind cat is 5 worse than behind dog.
    scores = table(he={"_cat": 3.0, "_dog": 2.0}, _cat={"_sat": -5.0, "_ran": 0.0}, _dog={"_sat": 0.0, "_ran": -5.0})
    model = llama_of_last_piece(TOKENIZER, scores)
    lines = ["the [MASK] sat", "the [MASK] ran"]
    assert filled(model, lines, Top1(kind="top_1")) == ["the dog sat", "the cat ran"]
    assert filled(model, lines, Top1(kind="top_1", right_context=LEFT_ONLY)) == ["the cat sat", "the cat ran"]


def test_a_word_of_several_pieces_is_written_whole():
    assert TOKENIZER.tokenize(" matat") == ["Ġmat", "at"]
    scores = {**table(he={"_mat": 3.0, "_cat": 2.9}, _mat={"at": 9.0}, _cat={"_sat": 3.0}), "at": {"Ġ.": 9.0}}
    model = llama_of_last_piece(TOKENIZER, scores)
    assert filled(model, ["the [MASK] ."], Top1(kind="top_1", right_context=LEFT_ONLY)) == ["the matat ."]


def test_top_k_takes_the_only_candidate_that_is_off_the_list():
    model = llama_of_last_piece(TOKENIZER, table(he={"_cat": 3.0, "_dog": 2.0, "_house": 1.0}))
    settings = TopK(kind="top_k", k=3, right_context=RightContext(words=0, candidates=1))
    counts = {}
    assert set(filled(model, ["the [MASK]"] * 20, settings, kept=["cat", "dog"], counts=counts)) == {"the house"}
    assert counts["fallbacks"] == 0
    filled(model, ["the [MASK]"] * 20, settings, kept=["cat", "dog", "house"], counts=counts)
    assert counts["fallbacks"] == 20


def test_weights_make_a_draw_without_replacement_unbiased():
    chances = np.array([0.5, 0.3, 0.1, 0.06, 0.04])
    values = np.array([1.0, 2.0, 0.0, 5.0, 10.0])
    random = np.random.default_rng(1)
    estimates = []
    for _ in range(20000):
        clocks = random.standard_exponential(5) / chances
        order = np.argsort(clocks)
        drawn = order[:2]
        estimates.append((np.exp(log_weights(chances[drawn], clocks[order[2]])) * values[drawn]).sum())
    # The expectation is that of the distribution: 0.5 + 0.6 + 0.3 + 0.4; the standard error is about 0.01.
    assert np.mean(estimates) == pytest.approx(1.8, abs=0.05)


@pytest.mark.parametrize(
    ("kind", "instruction", "tokenizer"),
    [(random_llama, "Predict", SENTENCE_PIECES), (random_gpt2, None, TOKENIZER), ("mistral", "P", TOKENIZER)],
    ids=["llama", "gpt2", "mistral"],
)
def test_every_shape_of_line_is_filled_and_batches_change_nothing(kind, instruction, tokenizer):
    model = random_causal_model(tokenizer, kind, sliding_window=80) if kind == "mistral" else kind(tokenizer)
    for settings in (Top1(kind="top_1"), TopK(kind="top_k", k=4), Sample(kind="sample")):
        results = [
            filled(
                model, LINES, settings.model_copy(update={"batch_sentences": size}), tokenizer=tokenizer,
                kept=["the", "cat"], instruction=instruction,
            )
            for size in (1, 4)
        ]  # fmt: skip
        assert results[0] == results[1]
        assert results[0][2:4] == ["", "no marker"]
        assert results[0][7].startswith(f"[{MASK}] saw <s> ")
        assert len(results[0][6].split()) == 1


def test_a_long_sentence_is_seen_through_a_window():
    model = random_gpt2(TOKENIZER, positions=64)
    line = "the cat sat on the mat and [MASK] ran to Paris, " * 8
    counts = {}
    (result,) = filled(model, [line], Top1(kind="top_1"), instruction="Predict", counts=counts)
    assert len(result.split()) == 8 * 11
    assert 0 < counts["windowed_slots"] <= 8
    with pytest.raises(ModelError, match="12 positions, too few"):
        filled(random_gpt2(TOKENIZER, positions=12), ["the [MASK] sat"], Top1(kind="top_1"), instruction="Predict")


def test_the_window_gives_the_scores_of_the_text_it_shows():
    """The last fill of a long line equals that of a line which has what the window has."""
    model = random_llama(TOKENIZER, positions=48)
    line = "the cat sat on the mat and the dog ran to Paris " * 5 + "the [MASK]"
    (result,) = filled(model, [line], Top1(kind="top_1"))
    shown = line.split()[-17:]
    expected = {filled(model, [" ".join(shown[start:])], Top1(kind="top_1"))[0].split()[-1] for start in range(8)}
    assert result.split()[-1] in expected


@pytest.mark.parametrize("method", ["sample", "log_linear"])
def test_words_of_any_number_of_pieces_are_drawn_by_their_weights(method):
    scores = {
        **table(he={"_cat": 5.0, "_dog": math.log(3), "_mat": 0.0}, _mat={"at": 9.0}, _dog={"_sat": 9.0}),
        "at": {"Ġsat": 9.0},
    }
    model = llama_of_last_piece(TOKENIZER, scores, others=-30.0)
    few = RightContext(words=0, candidates=2)
    settings, more = Sample(kind="sample", right_context=few), {}
    if method == "log_linear":  # three squared to one times three
        settings = LogLinear(kind="log_linear", weights=LogLinearWeights(filler=2.0), right_context=few)
        more = {"word_factors": {"cat": 0.0, "dog": 0.0, "matat": math.log(3)}}
    fills = filled(model, ["the [MASK]"] * 800, settings, kept=["cat"], **more)
    dogs = fills.count("the dog")
    assert dogs + fills.count("the matat") == 800
    # 600 expected, standard deviation 12.2
    assert 550 < dogs < 650
