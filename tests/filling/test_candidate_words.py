import pytest
from tiny_masked_models import byte_pair_tokenizer, word_piece_tokenizer

from tasks.errors import ModelError
from tasks.filling.masked_lm.candidate_words import candidate_words, continues_word, is_word


def test_a_word_may_stand_for_a_marker():
    for word in ["Chicago", "1996", "a", "I", "7", "café", "o'clock", "5pm", "हिन्दी"]:
        assert is_word(word)


def test_what_is_no_word_may_not():
    for piece in [*", ... b é ﬁ didn Didn ll ve Tom's and/or th ² 000 b\u0324 shit Fucking".split(), "two words", ""]:
        assert not is_word(piece)


def test_word_piece_candidates_are_whole_words_only():
    candidates = candidate_words(word_piece_tokenizer(), name="tiny")
    assert candidates.words == ("the", "cat", "dog", "sat", "ran", "on", "mat", "tom", "paris", "red")
    assert candidates.spaced.tolist() == list(range(5, 15))
    assert candidates.glued.tolist() == candidates.spaced.tolist()
    assert not candidates.cased


def test_a_word_list_takes_out_short_pieces_only_from_word_piece():
    known = {"the", "cat", "sat", "on"}
    candidates = candidate_words(word_piece_tokenizer(), name="tiny", known_words=known)
    assert candidates.words == ("the", "cat", "sat", "on", "paris")


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
    assert candidates.follows_space("in ", line_start=True)
    assert not candidates.follows_space("(", line_start=True)
    assert not candidates.follows_space("", line_start=True)
    assert not candidates.follows_space("", line_start=False)


def test_a_word_piece_line_start_makes_no_difference():
    candidates = candidate_words(word_piece_tokenizer(), name="tiny")
    assert candidates.line_start_is_spaced
    assert candidates.glued is candidates.spaced


def test_without_any_word_it_is_an_error():
    with pytest.raises(ModelError, match="no entry of its vocabulary"):
        candidate_words(word_piece_tokenizer(["##a", ",", "b"]), name="tiny")


def test_continuation_pieces():
    tokenizer = word_piece_tokenizer()
    assert sorted(tokenizer.convert_ids_to_tokens(continues_word(tokenizer))) == ["##ing", "##s"]
    tokenizer = byte_pair_tokenizer("aa bb, aa bb,")
    pieces = set(tokenizer.convert_ids_to_tokens(continues_word(tokenizer)))
    assert "b" in pieces
    assert not pieces & {"Ġbb", "Ġaa", ",", "<s>", "<mask>"}
