from tasks.corpora.division import normalise, sentence_key, why_left_out
from tasks.corpora.settings import CleaningSettings
from tasks.corpora.words import folded_words


def test_normalise():
    for text, line in [
        ("  two\t spaces \u00a0and\u2028lines\r\n", "two spaces and lines"),
        ("bell\x07and\x00null\x85next", "bell and null next"),
        ("soft\u00adhyphen zero\u200bwidth \ufeffmark", "softhyphen zerowidth mark"),
        ("ab\u202edc\u202c \u2066x\u2069 y\u200e \u061cz", "abdc x y\u200e \u061cz"),
        ("cafe\u0301", "café"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("Case, and 'punctuation' STAY!", "Case, and 'punctuation' STAY!"),
        ("👨‍👩‍👧", "👨‍👩‍👧"),
        (" \n ", ""),
    ]:
        assert normalise(text) == line


def test_reasons_to_leave_out():
    settings = CleaningSettings(minimum_words=2, maximum_words=3)
    texts = ("", "one", "one two", "one two three", "a b c d", "?! ...")
    reasons = [why_left_out(text, len(folded_words(text)), settings) for text in texts]
    assert reasons == ["empty", "too_short", None, None, "too_long", "too_short"]


def test_sentences_are_the_same_whatever_their_case_and_punctuation():
    def key(sentence):
        return sentence_key(sentence, folded_words(sentence))

    assert key("Hello, Tom - it’s me!") == key("hello tom it's ME")
    assert key("hello tom") != key("hello tim")
    assert key("?!") != key("...")
