"""Free filling: the words of what ``generate`` writes, held against the masked sentence, retried and handed over."""

import pytest
import torch
from tiny_causal_models import causal_tokenizer, llama_of_last_piece, random_gpt2, random_llama

from tasks.filling.causal_lm.free import Alignment, FreeFiller
from tasks.filling.causal_lm.language_model import CausalLanguageModel, CausalPrompt
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.methods.free import Free
from tasks.filling.methods.unigram import UnigramFiller

TOKENIZER = causal_tokenizer()
INSTRUCTION = "Predict the [MASK] tokens"
ALWAYS = {"Ċ": "Tom", "Tom": "Ġran", "Ġran": "Ġto", "Ġto": "Ġthe", "Ġthe": "Ġred", "Ġred": "Ġhouse", "Ġhouse": "</s>"}
"""A model that writes "Tom ran to the red house" whatever it is given."""


def writer(**more):
    scores = {last: {following: 9.0, **more.get(last.strip("Ġ"), {})} for last, following in ALWAYS.items()}
    return llama_of_last_piece(TOKENIZER, scores)


def sentences(*lines):
    return [read_masked_line(line, number, merge_markers=True) for number, line in enumerate(lines, start=1)]


def unigram(word="word"):
    return UnigramFiller({None: WordFrequencies.of([(word, 1)])}, MarkerRandomness(1))


def free(model, **settings):
    language_model = CausalLanguageModel(model, TOKENIZER, "tiny", instruction=INSTRUCTION)
    return FreeFiller(language_model, Free(kind="free", **settings), MarkerRandomness(1), unigram())


def words(filler, *lines):
    return [[fill.word for fill in fills] for fills in filler.fill(sentences(*lines), lambda slots: None)]


def test_the_words_at_the_markers_are_taken_and_other_sentences_handed_over():
    filler = free(writer(), attempts=0)
    lines = ("Tom ran to the [MASK] house", "[MASK] ran to the red [MASK]", "Ann ran to the [MASK] house", "none", "")
    assert words(filler, *lines) == [["red"], ["Tom", "house"], ["word"], [], []]
    counts = filler.counts
    assert (counts["free_sentences"], counts["free_malformed"], counts["free_handed_over"]) == (3, 1, 1)
    fills = filler.fill(sentences(*lines), lambda slots: None)
    assert [[fill.fallback for fill in line] for line in fills] == [[False], [False, False], [True], [], []]


def test_a_further_attempt_may_succeed():
    # "the" is followed by "red" at best, and by "cat" nearly as often.
    model = writer(the={"Ġcat": 8.9})
    with torch.no_grad():
        model.lm_head.weight[TOKENIZER.eos_token_id, TOKENIZER.get_vocab()["Ġcat"]] = 9.0
    lines = ["[MASK] ran to the cat"] * 20
    assert words(free(model, attempts=0), *lines) == [["word"]] * 20
    filler = free(model, attempts=1, temperature=1.0)
    written = words(filler, *lines)
    rewritten = filler.counts["free_rewritten"]
    assert 3 <= rewritten <= 17
    assert sum(line == ["Tom"] for line in written) == rewritten
    assert filler.counts["free_malformed"] == 20
    assert filler.counts["free_handed_over"] == 20 - rewritten
    assert written == words(free(model, attempts=1, temperature=1.0, batch_sentences=3), *lines)


def by_generate(language_model, sentence, longest):
    prompt = CausalPrompt(language_model, INSTRUCTION)
    pieces = torch.tensor([[*prompt.head, *prompt.inputs([sentence.texts])[0]]])
    written = language_model.model.generate(
        input_ids=pieces, attention_mask=torch.ones_like(pieces), do_sample=False, max_new_tokens=longest,
        eos_token_id=[language_model.end, *language_model.anchor], pad_token_id=language_model.padding,
    )[0, pieces.shape[1] :].tolist()  # fmt: skip
    return language_model.decode(written).partition("\n")[0], written


@pytest.mark.parametrize("model", [random_gpt2(TOKENIZER), writer()], ids=["random", "fixed"])
def test_the_outcome_is_that_of_generate(model):
    language_model = CausalLanguageModel(model, TOKENIZER, "tiny", instruction=INSTRUCTION)
    given = sentences("Tom ran to the [MASK] house", "Ann [MASK].", "[MASK] ran to the [MASK] house", "the [MASK] sat")
    texts, pieces = zip(*(by_generate(language_model, sentence, 24) for sentence in given), strict=True)
    # What the model writes, with one word masked, is what it writes rightly if it does not look at its prompt.
    filler = free(model)
    expected = [Alignment(s.texts).words(text) for s, text in zip(given, texts, strict=True)]
    assert filler.write(filler.encode(given)) == expected
    written = filler.pieces(filler.encode(given))
    assert all(written)
    assert written == [theirs[: len(ours)] for ours, theirs in zip(written, pieces, strict=True)]
    if model.config.tie_word_embeddings is False:
        assert [item is None for item in expected] == [False, True, False, True]


def test_too_long_for_the_positions_goes_to_the_fallback():
    filler = free(random_llama(TOKENIZER, positions=64))
    assert words(filler, "the cat sat on the mat " * 9 + "[MASK]") == [["word"]]
    assert filler.counts["free_too_long"] == 1


def test_alignment():
    for text, expected in [
        ("the cat sat", ["cat"]),
        (" the  cat sat ", ["cat"]),
        ("the don't sat", ["don't"]),
        ("the big cat sat", None),
        ("the  sat", None),
        ("the , sat", None),
        ("the MASK sat", None),
        ("the @MASK sat", None),
        ("The cat sat", None),
        ("the cat sat.", None),
        ("the cat", None),
    ]:
        assert Alignment(("the ", " sat")).words(text) == expected
