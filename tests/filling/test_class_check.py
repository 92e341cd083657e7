"""Fills that have the class of their marker, or the form of the masked word where no class is known."""

import re

from masked_sentences import masked

from tasks.corpora.words import fold
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import Casing
from tasks.filling.surrogates.class_check import ClassCheckedFiller
from tasks.filling.surrogates.class_words import ClassWords
from tasks.filling.surrogates.filler import SurrogateFiller
from tasks.filling.surrogates.marked_slots import kinds_of_slots
from tasks.filling.unigram_filler import UnigramFiller
from tasks.made_up.known import kinds_of_place
from tasks.masking.taggers.tagger import EntitySpan, Tagger

LETTERS = "abcdefghijklmnopqrstuvwxy"
CITIES, PEOPLE = ([f"{kind}{letter}" for letter in LETTERS] for kind in ("City", "Person"))


class ByPrefix(Tagger):
    """Knows every City and Person by its first letters, and that no sentence about a bank has a Cityh."""

    name = "prefix"
    entity_types = ["GPE", "PERSON"]  # noqa: RUF012

    def tag(self, lines):
        for line in lines:
            known = r"(City|Person)\w+" if "bank" not in line else r"(City|Person)(?!h)\w+"
            labels = {"City": "GPE", "Person": "PERSON"}
            yield line, [EntitySpan(*word.span(), labels[word[1]]) for word in re.finditer(known, line)]


def test_where_no_class_is_known_a_fill_has_the_form_of_the_masked_word():
    """At least twenty words of each form: ending, capital, figures; of each the first."""
    endings = [f"wal{letter}k{ending}" for ending in ("ing", "ed", "s", "") for letter in LETTERS]
    words = [*endings, *CITIES, *(str(number) for number in range(100, 130))]
    forms = {word.lower(): word for word in CITIES}
    class_words = ClassWords(ByPrefix(), forms)
    for before, original, expected in [
        ("he ", "singing", "walaking"),
        ("he ", "called", "walaked"),
        ("", "Boats", "walaks"),  # the capital is the sentence's
        ("in ", "Zurich", "Citya"),
        ("in ", "citya", "Citya"),
        ("in ", "1987", "100"),
    ]:
        (form,) = kinds_of_slots(masked(f"{before}{{MASK:{original}}} .", style="mask"), forms)
        assert words[class_words.weights(words, form).argmax()] == expected


def test_a_filler_chooses_among_the_words_of_the_class_and_a_wrong_fill_becomes_a_surrogate():
    """By frequency among the words of a class: the first liked one, where there is one."""
    class_words = ClassWords(ByPrefix(), {})
    counts = dict.fromkeys(["house", "runs", *CITIES, *PEOPLE], 1) | {"Personb": 10**6, "Cityh": 10**9, "the": 10**12}
    drawn = UnigramFiller({None: WordFrequencies.of(counts.items())}, MarkerRandomness(1), class_words)
    casing, surrogates = Casing({}, filler_is_cased=True), SurrogateFiller(MarkerRandomness(1))
    filler = ClassCheckedFiller(drawn, casing, class_words, surrogates)
    texts = ["The bank of {PERSON:Tom} in {LOCATION:Bonn}", "Go to {LOCATION:Bonn}", "nothing here", "Be {MASK:x}"]
    sentences = [masked(text, number) for number, text in enumerate(texts, start=1)]
    found = filler.fill(class_words.with_kinds(texts, sentences), int)
    (person, place), *others = [[fill.word for fill in line] for line in found]
    assert (person, *others) == ("Personb", ["Cityh"], [], ["the"])
    assert place not in counts
    assert fold(place) in kinds_of_place()
    # The tagger does not know the surrogate for a place.
    counts = {"class_slots": 3, "class_matches_first": 2, "class_matches": 2, "class_surrogates": 1}
    assert dict(filler.counts) == counts


def test_words_by_class():
    years, people = [str(year) for year in range(1900, 1930)], [f"Person{number}" for number in range(30)]
    words = ["Anna", "anna", "will", "May", "may", "1984", "12", "five", "dollars", "x1", "London", "1st", *people]
    class_words = ClassWords(ByPrefix(), {"may": "May"})

    def allowed(label, words):
        mask = class_words.weights(words, label)
        return mask if mask is None else {word for word, is_allowed in zip(words, mask, strict=True) if is_allowed}

    # A class with few words is no restriction.
    assert allowed("DATE", words) is None
    words += [*years, *CITIES]
    of = {label: allowed(label, words) for label in ("PERSON", "LOCATION", "DATE", "NUMBER", "MONEY")}
    assert {"Anna", *people} <= of["PERSON"]
    assert {"anna", "will"} & of["PERSON"] == set()
    assert {"London", *CITIES} <= of["LOCATION"]
    assert of["DATE"] == {"May", "may", "1984", "12", *years}
    assert of["NUMBER"] == {"1984", "12", "five", *years}
    assert of["MONEY"] == {"1984", "12", "dollars", *years}
