from hypothesis import given
from hypothesis import strategies as st

from tasks.language_model.normalisation import normalise
from tasks.speech.synthesis.synthetic_corpus import spoken_text, why_not_spoken


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


def test_what_cannot_have_a_reference_has_its_reason():
    for text, reason in [
        ("fine words here", None),
        ("naïve Zoë’s café", None),
        ("at 5 o'clock", "digits"),
        ("½ of it", "digits"),
        ("...", "no_words"),
        ("", "no_words"),
        ("he said привет", "other_script"),
        ("one", "too_short"),
        ("one two three four five", "too_long"),
    ]:
        assert why_not_spoken(text, 2, 4) == reason
