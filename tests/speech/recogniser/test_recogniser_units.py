import pytest

from tasks.errors import ModelError, SpeechError
from tasks.speech.recogniser.units import WORD_BEGIN, Units, train_language_units, train_units

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


def test_what_is_refused():
    with pytest.raises(SpeechError, match="4000 units cannot be learned from 80 sentences") as caught:
        train_units(SENTENCES, 4000, 1000)
    assert "cat" not in str(caught.value)
    with pytest.raises(SpeechError, match="no words"):
        train_units(["...", ""], 32, 1000)
    with pytest.raises(ModelError, match="no SentencePiece model"):
        Units(b"something else")


MIXED = [
    ("the cat and the rat sat en la casa alta", "en en en en en en es es es es"),
    ("mi gato come la comida is a tall tale", "es es es es es en en en en"),
] * 20


@pytest.fixture(scope="module")
def of_languages() -> Units:
    texts = [(text, languages.split()) for text, languages in MIXED]
    return train_language_units(texts, ["en", "es"], 28, 1000)


def test_units_of_several_languages_stand_in_blocks_and_tell_their_language(of_languages):
    assert len(of_languages) == 28
    ids = of_languages.encode("the gato sat", ["en", "es", "en"])
    assert of_languages.decode(ids) == "the gato sat"
    assert of_languages.languages_of(ids) == ["en", "es", "en"]
    # A word without a language goes with the one before it.
    assert of_languages.languages_of(of_languages.encode("gato is", ["es", None])) == ["es", "es"]
    told = of_languages.encode_all(["the cat and the rat", "en la casa"])
    assert [of_languages.languages_of(ids) for ids in told] == [["en"] * 5, ["es"] * 3]


def test_a_bias_is_on_the_units_of_its_language_alone(of_languages):
    assert of_languages.bias({}) is None
    bias = of_languages.bias({"es": None, "en": 2.0})
    assert bias.tolist() == [2.0] * 14 + [float("-inf")] * 14 + [0.0]
    with pytest.raises(SpeechError, match="no language 'de' \\(en, es\\)"):
        of_languages.bias({"de": 1.0})
