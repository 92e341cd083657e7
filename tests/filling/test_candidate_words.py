import pytest
from tiny_masked_models import byte_pair_tokenizer, word_piece_tokenizer

from tasks.errors import ModelError
from tasks.filling.masked_lm.candidate_words import candidate_words, continues_word, is_word


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


def test_byte_pair_candidates_begin_with_a_space_and_keep_both_entries():
    tokenizer = byte_pair_tokenizer("Paris likes café Paris likes café unlikely")
    vocabulary = tokenizer.get_vocab()
    candidates = candidate_words(tokenizer, name="tiny", known_words={"paris", "likes", "café"})
    assert set(candidates.words) == {"likes", "café", "Paris"}
    assert candidates.cased
    for word, spaced, glued in zip(candidates.words, candidates.spaced, candidates.glued, strict=True):
        assert tokenizer.convert_ids_to_tokens(int(spaced)).startswith("Ġ")
        assert tokenizer.decode([int(spaced)]).strip() == word
        if "é" not in word and word in vocabulary:
            assert glued == vocabulary[word]


def test_a_letter_is_a_candidate_only_where_the_word_list_has_it():
    tokenizer = byte_pair_tokenizer("Paris p Paris p Paris p")
    assert candidate_words(tokenizer, name="tiny", known_words={"paris", "p"}).words == ("p", "Paris")
    assert candidate_words(tokenizer, name="tiny", known_words={"paris"}).words == ("Paris",)
    assert "p" not in candidate_words(tokenizer, name="tiny").words


def test_a_slot_wants_the_entry_with_a_space_behind_a_space_only():
    candidates = candidate_words(byte_pair_tokenizer("Paris likes Paris likes"), name="tiny")
    for before, line_start, spaced in (("in ", True, True), ("(", True, False), ("", True, False), ("", False, False)):
        assert candidates.follows_space(before, line_start=line_start) is spaced


def test_a_vocabulary_without_candidates_is_an_error():
    for words, message in (
        (["##a", ",", "b"], "no entry of its vocabulary"),
        (["cat</w>", "dog</w>", "cat", "un"], r"marks the ends of words .*</w>.*take one"),
    ):
        with pytest.raises(ModelError, match=message):
            candidate_words(word_piece_tokenizer(words), name="tiny")


def test_continuation_pieces():
    tokenizer = word_piece_tokenizer()
    assert sorted(tokenizer.convert_ids_to_tokens(continues_word(tokenizer))) == ["##ing", "##s"]
    tokenizer = byte_pair_tokenizer("aa bb, aa bb,")
    pieces = set(tokenizer.convert_ids_to_tokens(continues_word(tokenizer)))
    assert "b" in pieces
    assert not pieces & {"Ġbb", "Ġaa", ",", "<s>", "<mask>"}
