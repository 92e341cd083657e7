import pytest

from tasks.errors import ModelError, SpeechError
from tasks.speech.recogniser.units import WORD_BEGIN, Units, train_units

SENTENCES = [
    "The cat sat on the mat.",
    "A dog isn't a cat!",
    "Dogs and cats, cats and dogs",
    "the end of the tale of the dog",
] * 20


@pytest.fixture(scope="module")
def units() -> Units:
    return train_units(SENTENCES, 24, 1000)


def test_units_spell_normalised_words(units):
    assert units.decode(units.encode("The  CAT -- isn't on the mat?!")) == "the cat isn't on the mat"


def test_the_blank_is_the_last_id_and_spells_nothing(units):
    ids = units.encode("the dog")
    with_blanks = [unit for i in ids for unit in (units.blank, i)]
    assert units.blank == len(units.pieces) == len(units) == 24
    assert units.decode(with_blanks) == "the dog"


def test_pieces_carry_the_mark_of_a_words_begin(units):
    spelled = "".join(units.pieces[i] for i in units.encode("the dog"))
    assert spelled == f"{WORD_BEGIN}the{WORD_BEGIN}dog"


def test_the_model_can_be_read_from_its_bytes(units):
    again = Units(units.model)
    assert again.pieces == units.pieces
    assert again.hash == units.hash
    assert again.hash != train_units(SENTENCES, 22, 1000).hash


def test_characters_never_seen_spell_nothing(units):
    assert units.decode(units.encode("\u0416")) == ""


def test_ids_of_other_units_are_refused(units):
    with pytest.raises(ModelError, match="unit 25 is not among the 24 pieces"):
        units.decode([1, 25])


def test_too_many_units_for_the_text():
    with pytest.raises(SpeechError, match="4000 units cannot be learned from 80 sentences") as caught:
        train_units(SENTENCES, 4000, 1000)
    assert "cat" not in str(caught.value)


def test_text_without_words():
    with pytest.raises(SpeechError, match="no words"):
        train_units(["...", ""], 32, 1000)


def test_damaged_units():
    with pytest.raises(ModelError, match="no SentencePiece model"):
        Units(b"something else")
