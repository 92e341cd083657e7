from tasks.corpora.division import normalise, sentence_key, why_left_out
from tasks.corpora.settings import CleaningSettings


def test_normalise():
    for text, line in [
        ("  two\t spaces \u00a0and\u2028lines\r\n", "two spaces and lines"),
        ("bell\x07and\x00null\x85next", "bell and null next"),
        ("soft\u00adhyphen zero\u200bwidth \ufeffmark", "softhyphen zerowidth mark"),
        ("cafe\u0301", "café"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("Case, and 'punctuation' STAY!", "Case, and 'punctuation' STAY!"),
        ("👨‍👩‍👧", "👨‍👩‍👧"),
        (" \n ", ""),
    ]:
        assert normalise(text) == line


def test_reasons_to_leave_out():
    settings = CleaningSettings(minimum_words=2, maximum_words=3)
    reasons = [why_left_out(text, settings) for text in ("", "one", "one two", "one two three", "a b c d", "?! ...")]
    assert reasons == ["empty", "too_short", None, None, "too_long", "too_short"]


def test_sentences_are_the_same_whatever_their_case_and_punctuation():
    assert sentence_key("Hello, Tom - it’s me!") == sentence_key("hello tom it's ME")
    assert sentence_key("hello tom") != sentence_key("hello tim")
    assert sentence_key("?!") != sentence_key("...")
