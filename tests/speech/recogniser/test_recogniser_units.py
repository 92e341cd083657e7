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
    ids = units.encode("the dog")
    assert "".join(units.pieces[i] for i in ids) == f"{WORD_BEGIN}the{WORD_BEGIN}dog"
    # The blank is the last id and spells nothing, like characters that were never seen.
    assert units.blank == len(units.pieces) == len(units) == 24
    assert units.decode([unit for i in ids for unit in (units.blank, i)]) == "the dog"
    assert units.decode(units.encode("\u0416")) == ""


def test_the_model_can_be_read_from_its_bytes(units):
    again = Units(units.model)
    assert again.pieces == units.pieces
    assert again.hash == units.hash
    assert again.hash != train_units(SENTENCES, 22, 1000).hash


def test_what_is_refused(units):
    with pytest.raises(SpeechError, match="4000 units cannot be learned from 80 sentences") as caught:
        train_units(SENTENCES, 4000, 1000)
    assert "cat" not in str(caught.value)
    with pytest.raises(SpeechError, match="no words"):
        train_units(["...", ""], 32, 1000)
    with pytest.raises(ModelError, match="no SentencePiece model"):
        Units(b"something else")
