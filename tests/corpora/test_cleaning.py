from tasks.corpora.division import normalise, sentence_key, why_left_out
from tasks.corpora.settings import CleaningSettings
from tasks.corpora.sources.document import split_sentences
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


def test_sentences():
    for text, sentences in [
        ("He came. She went! Why? 1999 was late.", ["He came.", "She went!", "Why?", "1999 was late."]),
        ("Mr. Li met Dr. Jones in St. Louis. They talked.", ["Mr. Li met Dr. Jones in St. Louis.", "They talked."]),
        ("J. K. Rowling and the U.S. Army. Then more.", ["J. K. Rowling and the U.S. Army.", "Then more."]),
        ("So did I. You did not.", ["So did I.", "You did not."]),
        ("It costs 3.50 dollars. Really.", ["It costs 3.50 dollars.", "Really."]),
        ("See no. 5 on p. 12. It is there.", ["See no. 5 on p. 12.", "It is there."]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("One line\nanother line", ["One line", "another line"]),
        ("Known since 1900.[12] It grew.", ["Known since 1900.[12]", "It grew."]),
        ("Wait... what? no. and on", ["Wait... what? no. and on"]),
        ("", []),
        ("  \n ", []),
    ]:
        assert split_sentences(text) == sentences
