import pytest
from tiny_masked_models import word_piece_tokenizer

from tasks.errors import ModelError
from tasks.filling.masked_lm.candidate_words import candidate_words, is_word


def test_what_is_a_word_and_what_is_none():
    words = ["Chicago", "1996", "a", "I", "7", "café", "o'clock", "5pm", "हिन्दी"]
    others = [*", ... b é ﬁ didn Didn ll ve Tom's and/or th ² 000 b\u0324 shit Fucking".split(), "two words", ""]
    assert [text for text in [*words, *others] if is_word(text)] == words


def test_word_piece_candidates_are_whole_words_only_and_short_ones_on_the_list():
    candidates = candidate_words(word_piece_tokenizer(), name="tiny")
    assert candidates.words == ("the", "cat", "dog", "sat", "ran", "on", "mat", "tom", "paris", "red")
    assert candidates.spaced.tolist() == list(range(5, 15))
    assert candidates.glued is candidates.spaced
    assert candidates.line_start_is_spaced
    assert not candidates.cased
    known = {"the", "cat", "sat", "on"}
    assert candidate_words(word_piece_tokenizer(), name="tiny", known_words=known).words == (
        "the", "cat", "sat", "on", "paris",
    )  # fmt: skip


def test_a_vocabulary_without_candidates_is_an_error():
    for words, message in (
        (["##a", ",", "b"], "no entry of its vocabulary"),
        (["cat</w>", "dog</w>", "cat", "un"], r"marks the ends of words .*</w>.*take one"),
    ):
        with pytest.raises(ModelError, match=message):
            candidate_words(word_piece_tokenizer(words), name="tiny")
