import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpora.words import fold
from tasks.filling.masked_sentence import Casing, read_masked_line, small_words, usual_forms

FORMS = {"london": "London", "nasa": "NASA", "i": "I"}


def write(line, *words, cased=False, forms=FORMS):
    sentence = read_masked_line(line, 1, merge_markers=True)
    return sentence.filled(Casing(forms, filler_is_cased=cased).write(sentence.texts, words))


def test_fills_of_a_lower_case_filler_follow_their_line():
    for line, words, expected in [
        ("[MASK] is nice. [MASK] too! (see [MASK])", ["it", "he", "them"], "It is nice. He too! (see them)"),
        ('"[MASK] went to [MASK]," he said', ["they", "london"], '"They went to London," he said'),
        ("We wait... [MASK] comes", ["he"], "We wait... he comes"),
        ("He met [MASK] of [MASK]", ["people", "nasa"], "He met people of NASA"),
        ("and i went to [MASK]", ["london"], "and i went to london"),
        ("so we went to [MASK]", ["london"], "so we went to london"),
        ("so we went to [MASK] in May", ["london"], "so we went to London in May"),
        ("I LOVE [MASK]", ["cats"], "I LOVE CATS"),
        ("Maybe [MASK] and [MASK] will", ["he", "i"], "Maybe he and I will"),
        ("[MASK]", ["london"], "London"),
        ("[MASK], [MASK]", ["yes", "no"], "Yes, no"),
    ]:
        assert write(line, *words) == expected


def test_within_a_sentence_a_capital_is_for_words_that_are_written_so():
    # Drawn without a look at the sentence, so that a capital means nothing: from titles, say.
    line, words = (
        "We met [MASK], [MASK] and [MASK] in [MASK]. [MASK] said no",
        ["Lord", "NASA", "mare", "LONDON", "idol"],
    )
    assert write(line, *words) == "We met lord, NASA and mare in London. Idol said no"
    # A filler that reads the sentence is believed, but for words that are hardly ever so.
    sentence = read_masked_line("We met [MASK], [MASK], [MASK] and [MASK]", 1, merge_markers=True)
    casing = Casing(FORMS, filler_is_cased=True, small={"lord", "us", "house"})
    assert casing.write(sentence.texts, ["Lord", "US", "Mare", "house"]) == ["lord", "US", "Mare", "house"]


def test_usual_forms_are_those_hardly_ever_in_lower_case():
    counts = [("London", 95), ("LONDON", 2), ("london", 3), ("However", 60), ("however", 40), ("cat", 5), ("NASA", 9)]
    assert usual_forms(counts) == {"london": "London", "nasa": "NASA"}
    assert small_words(counts) == {"cat"}
    # A list without capitals says nothing of them.
    assert small_words([("london", 5), ("cat", 5)]) == set()


@pytest.mark.parametrize("line", ["IT WAS [MASK] AGAIN", "it was [MASK]", "[MASK] it was, Tom"])
@given(word=st.sampled_from(["sınıf", "ışık", "İzmir", "straße"]) | st.text(min_size=1, max_size=5))
def test_no_case_makes_another_word(line, word):
    texts = tuple(line.split("[MASK]"))
    (written,) = Casing({}, filler_is_cased=True).write(texts, [word])
    assert fold(written) == fold(word)


def test_a_dotless_letter_stays_small_among_capitals():
    assert write("IT WAS [MASK] AND [MASK]", "sınıf", "straße", cased=True) == "IT WAS sınıf AND STRASSE"
