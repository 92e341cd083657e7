import pytest
import torch
from tiny_masked_models import (
    bert_of_bias,
    bert_that_avoids_repetition,
    byte_pair_tokenizer,
    random_bert,
    random_roberta,
    save,
    word_piece_tokenizer,
)
from transformers import pipeline

from tasks.errors import ModelError
from tasks.filling.filled_corpus import CorpusFiller, Shard
from tasks.filling.frequencies.word_frequencies import KeptWords
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.marker_scores import earliest_cut, scores_at
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_sentence import Casing
from tasks.filling.methods.sample import Sample
from tasks.filling.methods.top_1 import Top1
from tasks.filling.methods.top_k import TopK

WORD_PIECES = word_piece_tokenizer()
BYTE_PAIRS = byte_pair_tokenizer("the cat sat on the mat Tom sat on the red mat in Paris")
ROUNDING = 1e-4
"""Sums of the same float32 products in another order."""


def filled(model, tokenizer, lines, settings=None, *, kept=(), seed=1):
    settings = settings or Top1(kind="top_1")
    language_model = MaskedLanguageModel(model, tokenizer, "tiny").prepared()
    candidates = candidate_words(tokenizer, name="tiny")
    kept = KeptWords(kept)
    choice = settings.choice(kept.off_list(candidates.words), MarkerRandomness(seed))
    filler = MaskedFiller(language_model, candidates, choice, batch_sentences=settings.batch_sentences)
    casing = Casing({}, filler_is_cased=True)
    return CorpusFiller(filler, casing, kept, settings.merge_markers).fill_shard(Shard(0, 1, list(lines), None)).lines


def test_the_bias_alone_decides_where_the_sentence_does_not():
    model = bert_of_bias(WORD_PIECES, {"cat": 3.0, "dog": 2.0, "##ing": 9.0, ",": 9.0, "[SEP]": 9.0}, others=0.0)
    assert filled(model, WORD_PIECES, ["the [MASK] sat"]) == ["the cat sat"]


def test_the_off_list_rule_takes_the_only_candidate_that_is_off_the_list():
    model = bert_of_bias(WORD_PIECES, {"cat": 3.0, "dog": 2.0, "paris": 1.0}, others=0.0)
    settings = TopK(kind="top_k", k=3)
    assert set(filled(model, WORD_PIECES, ["the [MASK]"] * 20, settings, kept=["cat", "dog"])) == {"the paris"}


def test_the_second_fill_depends_on_the_first():
    model = bert_that_avoids_repetition(WORD_PIECES, "tom", "paris")
    lines = ["[MASK] on [MASK]", "red [MASK]", "tom on [MASK]", "[MASK], [MASK] on [MASK]"]
    assert filled(model, WORD_PIECES, lines) == ["Tom on paris", "red tom", "tom on paris", "Tom, paris on paris"]


def test_every_shape_of_line_is_filled():
    for line, expected in [
        ("", ""),
        ("   ", "   "),
        ("no marker", "no marker"),
        ("[MASK]", "Cat"),
        ("[MASK] [MASK]  [MASK]", "Cat"),
        ("[MASK]'s re-[MASK], [PERSON].", "Cat's re-cat, cat."),
        (r"[\MASK] [MASK]", "[MASK] cat"),
        ("see [SEP] [UNK] [MASK] [CLS]", "see [SEP] [UNK] cat [CLS]"),
        ("日本語 [MASK] 😀", "日本語 cat 😀"),
    ]:
        model = bert_of_bias(WORD_PIECES, {"cat": 3.0}, others=0.0)
        assert filled(model, WORD_PIECES, [line]) == [expected]


def test_the_batch_size_changes_nothing():
    for settings in [Top1(kind="top_1"), TopK(kind="top_k", k=4), Sample(kind="sample")]:
        words = ("the", "cat", "sat", "on", "red", "mat", "tom", "[MASK]", "[MASK],", "'s")
        lines = [" ".join(words[(i * j * j + i + j) % len(words)] for j in range(2 + i % 9)) for i in range(60)]
        model = random_bert(WORD_PIECES)
        results = [
            filled(model, WORD_PIECES, lines, settings.model_copy(update={"batch_sentences": size}), kept=["the"])
            for size in (1, 7, 64)
        ]
        assert results[0] == results[1] == results[2]
        assert len(set(results[0])) > 30


def test_another_seed_gives_other_fills():
    lines = ["the [MASK] sat"] * 30
    model, settings = random_bert(WORD_PIECES), TopK(kind="top_k", k=5)
    assert filled(model, WORD_PIECES, lines, settings, seed=1) == filled(model, WORD_PIECES, lines, settings, seed=1)
    assert filled(model, WORD_PIECES, lines, settings, seed=1) != filled(model, WORD_PIECES, lines, settings, seed=2)


def loop_over_pipeline(model, tokenizer, line):
    """Left to right with Hugging Face's own pipeline: the first answer that is one of our candidates."""
    unmask = pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=len(tokenizer))
    candidates = candidate_words(tokenizer, name="tiny")
    allowed = set(candidates.spaced.tolist())
    line = line.replace("[MASK]", tokenizer.mask_token)
    while tokenizer.mask_token in line:
        answers = unmask(line)
        first = answers[0] if isinstance(answers[0], list) else answers
        best = next(answer for answer in first if answer["token"] in allowed)
        line = line.replace(tokenizer.mask_token, tokenizer.decode([best["token"]]).strip(), 1)
    return line


def test_top_1_equals_a_loop_over_the_fill_mask_pipeline():
    for kind in ["bert", "roberta"]:
        tokenizer = WORD_PIECES if kind == "bert" else BYTE_PAIRS
        model = random_bert(tokenizer) if kind == "bert" else random_roberta(tokenizer)
        lines = ["the [MASK] sat on the [MASK]", "cat [MASK]", "on the red [MASK] sat [MASK] on [MASK] mat"]
        expected = [loop_over_pipeline(model, tokenizer, line) for line in lines]
        assert len(set(expected)) == 3
        assert filled(model, tokenizer, lines) == expected


def test_scores_at_the_markers_are_those_of_the_whole_projection():
    for tokenizer, model in ((WORD_PIECES, random_bert(WORD_PIECES)), (BYTE_PAIRS, random_roberta(BYTE_PAIRS))):
        pieces = torch.randint(5, len(tokenizer) - 1, (3, 9), generator=torch.Generator().manual_seed(1))
        rows, positions = torch.tensor([0, 1, 2, 2]), torch.tensor([1, 8, 0, 4])
        with torch.no_grad():
            whole = model(input_ids=pieces, attention_mask=torch.ones_like(pieces)).logits[rows, positions]
            chosen = scores_at(model, pieces, torch.ones_like(pieces), rows, positions)
            early = scores_at(model, pieces, None, rows, positions, cut=earliest_cut(model))
            again = model(input_ids=pieces, attention_mask=torch.ones_like(pieces)).logits
        assert chosen.shape == (4, len(tokenizer))
        assert torch.allclose(chosen, whole, atol=ROUNDING)
        assert torch.allclose(early, whole, atol=ROUNDING)
        assert again.shape == (3, 9, len(tokenizer))


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


def test_a_very_long_line_is_filled_to_its_end():
    model = bert_of_bias(WORD_PIECES, {"cat": 3.0}, others=0.0)
    line = "the [MASK], " * 300
    assert filled(model, WORD_PIECES, [line]) == ["the cat, " * 300]


def test_loading_a_folder_gives_the_same_scores(tmp_path):
    model = random_bert(WORD_PIECES)
    language_model = MaskedLanguageModel.load(save(model, WORD_PIECES, tmp_path / "tiny"))
    (window,) = language_model.frame.windows([5, language_model.mask_entry, 6], [1])
    with torch.no_grad():
        expected = model(input_ids=torch.tensor([window.pieces])).logits[0, 2]
    assert torch.allclose(language_model.logits([window])[0], expected, atol=ROUNDING)


def test_a_hub_that_cannot_be_reached_is_asked_once(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelError, match="neither a folder nor reachable on the hub"):
        MaskedLanguageModel.load("no-such-owner/no-such-model")
    assert constants.HF_HUB_OFFLINE
