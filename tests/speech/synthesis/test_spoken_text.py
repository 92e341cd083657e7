from hypothesis import given
from hypothesis import strategies as st

from tasks.language_model.normalisation import normalise
from tasks.speech.synthesis.synthetic_corpus import spoken_text


def test_words_are_spoken_as_the_reference_has_them_with_their_pauses():
    for text, spoken in [
        ("Well, Tom's here; isn't he?", "well, tom's here; isn't he?"),
        ('"Stop!" he said.', "stop! he said."),
        ("THE US & UK -- at 'home'", "the us uk at home"),
        ("a well-known man – or so", "a well known man, or so"),
        ("(yes)", "yes"),
        ("100 %", "100"),
        ("...", ""),
    ]:
        assert spoken_text(text) == spoken


@given(st.text() | st.text("ab'’.,- \"&", max_size=30))
def test_the_recording_says_the_words_of_the_reference(text):
    assert normalise(spoken_text(text)) == normalise(text)
